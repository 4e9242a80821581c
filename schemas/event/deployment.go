package event

import "time"

// The events of the stream deployment-log. They are about the log as a whole and about no account.

// FormatRaised allows every instance to write events and streams of a format of the log from now on. A program that does not
// know the format must not use the log any more. Formats only rise; a log without this event has format 1.
type FormatRaised struct {
	Format  int    `json:"format"`
	Program string `json:"program"` // version of the program that raised it
}

// LogRestored records that the log was put back from a backup. Events that were written after the copy was taken are lost.
type LogRestored struct {
	TakenAt  time.Time `json:"takenAt"`  // when the copy was begun
	Position uint64    `json:"position"` // of the copy's last event
	Program  string    `json:"program"`  // version of the program that restored it
}

// UsageLogBound names the log that counts the requests of this log's accounts. Another log, or an empty one, must not take
// its place unnoticed: requests would be counted from zero. A later event of the type takes the place of the earlier one.
type UsageLogBound struct {
	Log string `json:"log"` // UUID
}

// EventType is the wire name.
func (FormatRaised) EventType() string  { return "deployment.format-raised.v1" }
func (LogRestored) EventType() string   { return "deployment.restored.v1" }
func (UsageLogBound) EventType() string { return "deployment.usage-log-bound.v1" }
