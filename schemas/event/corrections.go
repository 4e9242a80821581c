package event

// EventVoided voids an earlier event of the same stream that cannot be used. An operator decides that. Folds of the stream
// skip the voided event.
type EventVoided struct {
	Revision int64  `json:"revision"` // of the voided event
	EventID  string `json:"event"`    // its id
	Type     string `json:"type"`     // its type
	Reason   string `json:"why"`      // why it cannot be used
}

// AccountEventVoided is EventVoided in the stream of an account.
type AccountEventVoided struct{ EventVoided }

// TokenEventVoided is EventVoided in the stream of a customer-area token.
type TokenEventVoided struct{ EventVoided }

// LocationsEventVoided is EventVoided in the stream of an account's sites.
type LocationsEventVoided struct{ EventVoided }

// Correction is an event that voids another of its stream.
type Correction interface {
	Event
	VoidedRevision() (revision int64)
}

// VoidedRevision is the revision of the voided event.
func (e EventVoided) VoidedRevision() int64 { return e.Revision }

// EventType is the wire name.
func (AccountEventVoided) EventType() string   { return "account.event-voided.v1" }
func (TokenEventVoided) EventType() string     { return "token.event-voided.v1" }
func (LocationsEventVoided) EventType() string { return "locations.event-voided.v1" }
