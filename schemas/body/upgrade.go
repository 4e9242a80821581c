package body

// Upgrade is GET /upgrade: how far an upgrade of the program is. Old and new programs share a log until it is finished.
type Upgrade struct {
	Envelope
	Format      int               `json:"format" doc:"Of the log: what programs may write on it"`
	KnownFormat int               `json:"format_connu" doc:"The highest that the program which answers knows; finishing the upgrade raises the log to it"`
	Instances   []RunningInstance `json:"instances" doc:"That run, or ran a few seconds ago"`
}

// RunningInstance is an instance that shares the log.
type RunningInstance struct {
	ID          string `json:"id" doc:"New at each start"`
	Program     string `json:"programme,omitempty" doc:"Version of its program; left out for a program that does not say it"`
	KnownFormat int    `json:"format_connu" doc:"The highest format that its program knows"`
	IsBlocking  bool   `json:"bloque" doc:"The upgrade cannot be finished while it runs: its program is too old"`
}
