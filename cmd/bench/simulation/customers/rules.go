package customers

import "lieudit/cmd/bench/model"

// Rule is a rule that must hold, see model.Rules.
type Rule = model.Rule

// The rules that the world checks itself.
const (
	NoPanic         = model.NoPanic
	InstancesReady  = model.InstancesReady
	ModelsMove      = model.ProjectionsMove
	CheckpointsGoOn = model.CheckpointsGoOn
	RebuildsEqual   = model.RebuildsEqual
	RebuildsEnd     = model.RebuildsEnd
	EndsInTime      = model.EndsInTime
	OwnFilesAreUsed = model.OwnFilesAreUsed
	ClosedStays     = model.ClosedStays
)
