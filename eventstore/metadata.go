package eventstore

import (
	"encoding/json"
	"fmt"
)

// Metadata is the envelope of an event: who caused it, for whom, in the course of what. Actor and OnBehalfOf are
// opaque ids ("token:…", "system"), never names.
type Metadata struct {
	CorrelationID string `json:"$correlationId,omitempty"` // the conversation: shared by all that follows from one request
	CausationID   string `json:"$causationId,omitempty"`   // the command, or the event, this one follows from
	Actor         string `json:"actor,omitempty"`
	OnBehalfOf    string `json:"onBehalfOf,omitempty"` // the account an agency acted for
	Reason        string `json:"reason,omitempty"`
	EndOfAppend   bool   `json:"end,omitempty"` // the last event of its append
}

// DecodeMetadata reads the envelope of a recorded event. An event without one has the zero Metadata; one whose
// envelope is not JSON is an *UnusableError.
func (r RecordedEvent) DecodeMetadata() (Metadata, error) {
	var m Metadata
	if len(r.Metadata) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(r.Metadata, &m); err != nil {
		return m, newUnusableError(r, fmt.Errorf("metadata: %w", err))
	}
	return m, nil
}

// EntityID is whose data a stream holds: what follows the first dash of its name.
func EntityID(stream string) string {
	for i := range len(stream) {
		if stream[i] == '-' {
			return stream[i+1:]
		}
	}
	return ""
}
