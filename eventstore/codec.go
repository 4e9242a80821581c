package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"lieudit/schemas/event"
)

// Codec encodes typed events for a stream and decodes them. On the log personal texts are sealed. It is safe for concurrent
// use.
type Codec struct {
	vault     Vault
	hasFormat func(ctx context.Context, format int) (bool, error) // nil: the log has every format
}

// NewCodec returns a codec whose data keys come from vault, for a log of the highest format.
func NewCodec(vault Vault) *Codec { return &Codec{vault: vault} }

// WithFormat returns the codec for a log whose format hasFormat reports (commands/deployment). Events that the log's format
// does not allow yet are written in their earlier version.
func (c *Codec) WithFormat(hasFormat func(ctx context.Context, format int) (bool, error)) *Codec {
	return &Codec{c.vault, hasFormat}
}

// HasFormat reports whether the log has a format or a higher one, for commands that have no earlier form of their events.
func (c *Codec) HasFormat(ctx context.Context, format int) (bool, error) {
	if c.hasFormat == nil {
		return true, nil
	}
	return c.hasFormat(ctx, format)
}

// Encode makes one append to a stream out of events. Event ids are derived from command and the event's index; the last event
// gets the end mark. Sealing is random, so keep the result to send the append again. An event that is not in the catalog is
// event.ErrUnknownType.
//
// The reason in meta is sealed like personal texts. It is left out if the account is erased, since nobody could read it.
func (c *Codec) Encode(ctx context.Context, stream string, command uuid.UUID, meta Metadata, events []event.Event) ([]ProposedEvent, error) {
	sealsTexts := false
	if dependsOnFormat(meta, events) {
		var err error
		if sealsTexts, err = c.sealsTexts(ctx); err != nil {
			return nil, err
		}
	}
	if sealsTexts && len(events) > 0 {
		var err error
		if meta, err = c.sealReason(ctx, stream, subjectOf(stream, events[0]), meta); err != nil {
			return nil, err
		}
	}
	batch := make([]ProposedEvent, len(events))
	for i, e := range events {
		if !sealsTexts || subjectOf(stream, e) == "" {
			e = event.Earlier(e)
		}
		meta.EndOfAppend = i == len(events)-1
		p, err := c.encodeEvent(ctx, stream, meta, e)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", e.EventType(), err)
		}
		p.ID = uuid.NewSHA1(command, []byte{byte(i >> 16), byte(i >> 8), byte(i)})
		batch[i] = p
	}
	return batch, nil
}

// dependsOnFormat reports whether an append looks different in a log of a lower format. Most appends do not, including those
// of counted requests, and so never ask for the format.
func dependsOnFormat(meta Metadata, events []event.Event) bool {
	hasEarlier := func(e event.Event) bool { return event.Earlier(e).EventType() != e.EventType() }
	return meta.Reason != "" || slices.ContainsFunc(events, hasEarlier)
}

// sealsTexts reports whether the log's format allows sealed labels, names and reasons.
func (c *Codec) sealsTexts(ctx context.Context) (bool, error) {
	return c.HasFormat(ctx, event.SealedTextFormat)
}

func (c *Codec) encodeEvent(ctx context.Context, stream string, meta Metadata, e event.Event) (ProposedEvent, error) {
	if _, ok := event.Lookup(e.EventType()); !ok { // nobody could decode it
		return ProposedEvent{}, event.ErrUnknownType
	}
	sealed, err := event.MapPersonal(e, func(p event.Personal) (event.Personal, error) {
		return c.seal(ctx, stream, subjectOf(stream, e), p)
	})
	if err != nil {
		return ProposedEvent{}, err
	}
	data, err := json.Marshal(sealed)
	if err != nil {
		return ProposedEvent{}, err
	}
	envelope, err := json.Marshal(meta)
	return ProposedEvent{Type: e.EventType(), Data: data, Metadata: envelope}, err
}

// Decode decodes a recorded event. Personal texts whose key was destroyed are empty. A text that cannot be read for another
// reason is an *UnreadableError. A type that is not in the catalog is event.ErrUnknownType; data that does not fit its type
// is an *UnusableError.
func (c *Codec) Decode(ctx context.Context, r RecordedEvent) (event.Event, error) {
	e, err := DecodeSealed(r)
	if err != nil {
		return nil, err
	}
	subject := subjectOf(r.Stream, e)
	e, err = event.MapPersonal(e, func(p event.Personal) (event.Personal, error) {
		return c.open(ctx, r.Stream, subject, p)
	})
	if errors.Is(err, errNotSealed) {
		return nil, newUnusableError(r, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
	}
	return e, nil
}

// DecodeMetadata decodes the envelope of a recorded event, whose decoded form is e, and opens its reason. It fails like
// Decode.
func (c *Codec) DecodeMetadata(ctx context.Context, r RecordedEvent, e event.Event) (Metadata, error) {
	m, err := r.DecodeMetadata()
	if err != nil {
		return m, err
	}
	if m.Actor == SystemActor {
		return m, nil
	}
	reason, err := c.Open(ctx, r.Stream, e, m.StoredReason())
	if errors.Is(err, errNotSealed) {
		return Metadata{}, newUnusableError(r, err)
	}
	m.Reason, m.SealedReason = string(reason), ""
	return m, err
}

// DecodeSealed decodes a recorded event and leaves its personal texts sealed. It needs no vault. It fails like Decode, but
// never with an *UnreadableError.
func DecodeSealed(r RecordedEvent) (event.Event, error) {
	e, err := event.Decode(r.Type, r.Data)
	switch {
	case errors.Is(err, event.ErrUnknownType):
		return nil, fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
	case err != nil:
		return nil, newUnusableError(r, err)
	}
	return e, nil
}

func newUnusableError(r RecordedEvent, err error) *UnusableError {
	return &UnusableError{Stream: r.Stream, Revision: r.Revision, Position: r.Position, Err: err}
}

// SystemActor is the actor of what the program does on its own. Its reasons are the program's words: they are not sealed, and
// an erasure leaves them.
const SystemActor = "system"

// Metadata is the envelope of an event: who caused it, for whom, in which request. Actor and OnBehalfOf are opaque ids
// ("token:…", SystemActor), never names.
type Metadata struct {
	CorrelationID string `json:"$correlationId,omitempty"` // shared by all events that follow from one request
	CausationID   string `json:"$causationId,omitempty"`   // the command or the event that this one follows from
	Actor         string `json:"actor,omitempty"`
	OnBehalfOf    string `json:"onBehalfOf,omitempty"` // the account an agency acted for
	Reason        string `json:"reason,omitempty"`     // in clear
	EndOfAppend   bool   `json:"end,omitempty"`        // the last event of its append

	// SealedReason replaces Reason since event.SealedTextFormat, for an event about an account.
	SealedReason event.Personal `json:"sealedReason,omitempty"`
}

// StoredReason is the reason as the log has it: sealed, or marked as clear. Codec.Open opens it.
func (m Metadata) StoredReason() event.Personal {
	if m.SealedReason != "" {
		return m.SealedReason
	}
	return event.Clear(m.Reason)
}

// DecodeMetadata decodes the envelope of a recorded event. An event without one has the zero Metadata. A malformed envelope
// is an *UnusableError.
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

// EntityID is the id of the entity whose events a stream holds: the part of its name after the first dash, or "". It is also
// the subject of the stream's data key.
func EntityID(stream string) string {
	for i := range len(stream) {
		if stream[i] == '-' {
			return stream[i+1:]
		}
	}
	return ""
}
