package event

// EventVoided says that an earlier event of the same stream is passed over for good: it cannot be used, and an operator
// says that the stream goes on without it. Whoever folds the stream folds it as if that event were not there.
type EventVoided struct {
	Revision int64  `json:"revision"` // of the event that is passed over
	EventID  string `json:"event"`    // its id
	Type     string `json:"type"`     // its type
	Reason   string `json:"why"`      // why it cannot be used
}

// AccountEventVoided is EventVoided in the stream of an account.
type AccountEventVoided struct{ EventVoided }

// TokenEventVoided is EventVoided in the stream of a customer-area token.
type TokenEventVoided struct{ EventVoided }

// LocationsEventVoided is EventVoided in the stream of an account's places.
type LocationsEventVoided struct{ EventVoided }

// Correction is an event that names another of its stream that is passed over.
type Correction interface {
	Event
	VoidedRevision() (revision int64)
}

// VoidedRevision is the revision of the event that is passed over.
func (e EventVoided) VoidedRevision() int64 { return e.Revision }

// EventType is the wire name.
func (AccountEventVoided) EventType() string   { return "account.event-voided.v1" }
func (TokenEventVoided) EventType() string     { return "token.event-voided.v1" }
func (LocationsEventVoided) EventType() string { return "locations.event-voided.v1" }
