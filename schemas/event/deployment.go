package event

import "time"

// The events of the stream deployment-log are about the log as a whole, not about an account.

// FormatRaised lets every instance write events and streams of a log format from now on. A program that does not know the
// format must stop using the log. Formats only rise; a log without this event has format 1.
type FormatRaised struct {
	Format  int    `json:"format"`
	Program string `json:"program"` // version of the program that raised it
}

// LogRestored records that the log was restored from a backup. Events written after the backup was taken are lost.
type LogRestored struct {
	TakenAt  time.Time `json:"takenAt"`  // when the copy was begun
	Position uint64    `json:"position"` // of the copy's last event
	Program  string    `json:"program"`  // version of the program that restored it
}

// UsageLogBound names the log that counts the requests of this log's accounts. If another log, or an empty one, replaced it
// unnoticed, requests would be counted from zero. A later event of the type replaces the earlier one.
type UsageLogBound struct {
	Log string `json:"log"` // UUID
}

// The events of the stream deployment-releases are about the reference data that instances answer from (the address base and
// the road network) and about the instances themselves.

// DataReleased makes a file of reference data the one that every instance must serve. The last event of each kind counts. An
// instance without the file fetches it from another one, which it shows Secret.
type DataReleased struct {
	Kind        string `json:"kind"`        // vintage or network
	Name        string `json:"name"`        // of the file in the folder of its kind
	Date        string `json:"date"`        // of the data
	Sum         string `json:"sum"`         // SHA-256 of the file, in hexadecimal
	Bytes       int64  `json:"bytes"`       // size of the file
	Format      int    `json:"format"`      // version of the file's format
	Secret      string `json:"secret"`      // random; whoever knows it may fetch the file
	Instance    string `json:"instance"`    // the instance that released it
	IsSynthetic bool   `json:"isSynthetic"` // the data is invented
	IsAdopted   bool   `json:"isAdopted"`   // nobody released it: it was already being served when the log could first hold releases
}

// InstanceAnnounced tells what an instance serves and where other instances reach it. The last event of an instance counts.
type InstanceAnnounced struct {
	Instance string          `json:"instance"` // id of the process
	Host     string          `json:"host"`     // name of its machine
	URL      string          `json:"url"`      // where other instances reach it; "" when they do not
	Program  string          `json:"program"`  // version
	Data     []AnnouncedData `json:"data"`     // one of each kind
}

// AnnouncedData is what an instance has of one kind of reference data. Sums are SHA-256 in hexadecimal, or "".
type AnnouncedData struct {
	Kind        string `json:"kind"`
	FirstFormat int    `json:"firstFormat"` // the versions of the file's format that it opens
	LastFormat  int    `json:"lastFormat"`
	Follows     string `json:"follows"` // the last release that it has seen on the log
	Serves      string `json:"serves"`  // the file that it answers from
	Before      string `json:"before"`  // another file that it has
	Problem     string `json:"problem"` // why it does not serve what it follows, for people
}

// InstanceLeft takes an instance off the list: it ended, or another instance found that it no longer runs. If it does still
// run, it announces itself again.
type InstanceLeft struct {
	Instance string `json:"instance"`
	IsLost   bool   `json:"isLost"` // another instance reported it
}

// EventType is the wire name.
func (DataReleased) EventType() string      { return "deployment.data-released.v1" }
func (InstanceAnnounced) EventType() string { return "deployment.instance-announced.v1" }
func (InstanceLeft) EventType() string      { return "deployment.instance-left.v1" }

// EventType is the wire name.
func (FormatRaised) EventType() string  { return "deployment.format-raised.v1" }
func (LogRestored) EventType() string   { return "deployment.restored.v1" }
func (UsageLogBound) EventType() string { return "deployment.usage-log-bound.v1" }
