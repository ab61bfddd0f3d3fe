"""Workflows: tasks that make data for each other, and their schedulers."""

from gridsched.plugins import Command, Plugin, WorkloadKind, of_class

_static = of_class("gridsched.systems.workflows.static_lists", ("workflow",))
_energy = of_class("gridsched.systems.workflows.energy_lists", ("workflow",))
_ready = of_class("gridsched.systems.workflows.ready_lists", ("workflow",))

plugin = Plugin(
    "workflows",
    schedulers=(
        _static("heft", "HEFT", "Topcuoglu, Hariri, Wu 2002, section 4.1"),
        _static("cpop", "CPOP", "Topcuoglu, Hariri, Wu 2002, section 4.2"),
        _static("peft", "PEFT", "Arabnejad, Barbosa 2014"),
        _static("lookahead_heft", "LookaheadHEFT", "Bittencourt, Sakellariou, Madeira 2010"),
        _static("dls", "DLS", "Sih, Lee 1993"),
        _static("hbmct", "HBMCT", "Sakellariou, Zhao 2004"),
        _energy("ecs", "ECS", "Lee, Zomaya 2009 and 2011"),
        _energy("heft_slack", "HEFTWithSlack", "Topcuoglu, Hariri, Wu 2002, then slack reclamation"),
        _energy("ees", "EES", "after Huang et al. 2012"),
        _ready("ready_mct", "ReadyMCT", "Maheswaran et al. 1999, over ready tasks and their data"),
        _ready("ready_met", "ReadyMET", "Maheswaran et al. 1999, over ready tasks"),
        _ready("ready_olb", "ReadyOLB", "Maheswaran et al. 1999, over ready tasks"),
        _ready("ready_min_min", "ReadyMinMin", "Maheswaran et al. 1999, over ready tasks and their data"),
        _ready("ready_max_min", "ReadyMaxMin", "Maheswaran et al. 1999, over ready tasks and their data"),
        _ready("ready_sufferage", "ReadySufferage", "Maheswaran et al. 1999, over ready tasks and their data"),
    ),
    workloads=(
        WorkloadKind(
            "workflow",
            "gridsched.systems.workflows.workflow_keys:WorkflowKeys",
            "gridsched.systems.workflows.workflow_keys:make_workflow",
            document="docs/workflows.md",
        ),
    ),
    metrics=("gridsched.systems.workflows.workflow_metrics",),
    studies="gridsched.systems.workflows.studies",
    commands=(
        Command("workflow", "gridsched.systems.workflows.commands", "Workflows of WfCommons and Pegasus as tables."),
    ),
)
