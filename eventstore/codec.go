package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"lieudit/schemas/event"
)

// Codec turns typed events into bytes for a stream and back, and keeps personal fields unreadable in
// between.
type Codec struct{ vault Vault }

// NewCodec is a codec whose data keys come from vault.
func NewCodec(vault Vault) *Codec { return &Codec{vault} }

// Encode makes one append of events. Their ids follow from command, so the result, kept and sent again, is the
// very same batch; the last event gets the end mark. An event the catalog does not hold is event.ErrUnknownType.
func (c *Codec) Encode(ctx context.Context, stream string, command uuid.UUID, meta Metadata, events []event.Event) ([]ProposedEvent, error) {
	batch := make([]ProposedEvent, len(events))
	for i, e := range events {
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

func (c *Codec) encodeEvent(ctx context.Context, stream string, meta Metadata, e event.Event) (ProposedEvent, error) {
	if _, ok := event.Lookup(e.EventType()); !ok { // nor is it known which of its fields are personal
		return ProposedEvent{}, event.ErrUnknownType
	}
	sealed, err := event.MapPersonal(e, func(p event.Personal) (event.Personal, error) {
		key, err := c.vault.Key(ctx, EntityID(stream), true)
		if err != nil {
			return "", fmt.Errorf("data key of %s: %w", stream, err)
		}
		return sealField(key, stream, p)
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

// Decode reads a recorded event. Personal fields whose key was destroyed are empty; those that cannot be read for
// another reason are an *UnreadableError. An event the catalog does not hold is event.ErrUnknownType; one that is not what
// its type says is an *UnusableError.
func (c *Codec) Decode(ctx context.Context, r RecordedEvent) (event.Event, error) {
	e, err := DecodeSealed(r)
	if err != nil {
		return nil, err
	}
	e, err = event.MapPersonal(e, func(p event.Personal) (event.Personal, error) {
		return c.unsealField(ctx, r.Stream, p)
	})
	if errors.Is(err, errNotSealed) {
		return nil, newUnusableError(r, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
	}
	return e, nil
}

// DecodeSealed reads a recorded event and leaves its personal fields as they stand on the log. Its errors are those of
// Decode.
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
