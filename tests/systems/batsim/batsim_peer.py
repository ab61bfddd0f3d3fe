"""A scheduler of Batsim's protocol that answers by a script: batsim_peer.py ADDRESS SCRIPT HEARD.

SCRIPT is a JSON list: entry k answers the k-th message. A list holds the events, of
which those without a timestamp happen now; a text is sent as it is; a number is an exit status;
null is silence. What was heard goes to HEARD, one line a message, behind the id of the process.
"""

import json
import os
import sys
import time
from pathlib import Path

import zmq


def main(address, script, heard):
    answers = json.loads(Path(script).read_text())
    socket = zmq.Context().socket(zmq.REP)
    socket.bind(address)
    with open(heard, "a") as log:
        print(os.getpid(), file=log, flush=True)
        while True:
            text = socket.recv_string()
            print(text, file=log, flush=True)
            message = json.loads(text)
            answer = answers.pop(0) if answers else []
            if isinstance(answer, int):
                sys.stderr.write(f"status {answer}\n")
                sys.exit(answer)
            if answer is None:
                time.sleep(600)
            if isinstance(answer, list):
                events = [{"timestamp": message["now"], **each} for each in answer]
                until = max([message["now"], *(each["timestamp"] for each in events)])
                answer = json.dumps({"now": until, "events": events})
            socket.send_string(answer)
            if message["events"][-1]["type"] == "SIMULATION_ENDS":
                return


main(*sys.argv[1:])
