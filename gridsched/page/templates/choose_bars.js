// Draw the bars in view, the longest where they are too many, of the user that is chosen.
const choose = () => {
  const {left, right, top, bottom, user: users_of} = every.data
  const {start: x0, end: x1} = gantt.x_range, {start: ya, end: yb} = gantt.y_range
  const y0 = Math.min(ya, yb), y1 = Math.max(ya, yb)
  const code = user == null || user.value == all ? null : users.indexOf(user.value)
  const chosen = []
  let n = 0
  for (let k = 0; k < left.length; k++) {
    if (right[k] < x0 || left[k] > x1 || bottom[k] < y0 || top[k] > y1) continue
    if (code !== null && users_of[k] != code) continue
    if (n++ < most) chosen.push(k)
  }
  const taken = Object.entries(every.data).map(([name, column]) => [name, chosen.map(k => column[k])])
  shown.data = Object.fromEntries(taken)
  const few = `(the ${most.toLocaleString("en")} longest of ${n.toLocaleString("en")} bars in view; zoom in for more)`
  gantt.title.text = n > most ? `${title} ${few}`.trim() : title
}
window.clearTimeout(every.waits)
every.waits = window.setTimeout(choose, 120)
