package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"lieudit/schemas/event"
)

// Codec turns typed events into bytes for a stream and back. On the log personal texts are sealed. It is safe for concurrent
// use.
type Codec struct{ vault Vault }

// NewCodec returns a codec whose data keys come from vault.
func NewCodec(vault Vault) *Codec { return &Codec{vault} }

// Encode makes one append to a stream out of events. Their ids follow from command and their index, and the last one gets
// the end mark. Sealing is random: to send the append again, keep the result. An event that the catalog lacks is
// event.ErrUnknownType.
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
	if _, ok := event.Lookup(e.EventType()); !ok { // nobody could decode it
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

// Decode decodes a recorded event. Personal texts whose key was destroyed are empty. One that cannot be read for another
// reason is an *UnreadableError. An event that the catalog lacks is event.ErrUnknownType; one that is not of the form of its
// type is an *UnusableError.
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

// DecodeSealed decodes a recorded event and leaves its personal texts sealed. It needs no vault. Its errors are those of
// Decode but *UnreadableError.
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

// Metadata is the envelope of an event: who caused it, for whom, by which request. Actor and OnBehalfOf are opaque ids
// ("token:…", "system"), never names.
type Metadata struct {
	CorrelationID string `json:"$correlationId,omitempty"` // shared by all events that follow from one request
	CausationID   string `json:"$causationId,omitempty"`   // the command or the event that this one follows from
	Actor         string `json:"actor,omitempty"`
	OnBehalfOf    string `json:"onBehalfOf,omitempty"` // the account an agency acted for
	Reason        string `json:"reason,omitempty"`
	EndOfAppend   bool   `json:"end,omitempty"` // the last event of its append
}

// DecodeMetadata decodes the envelope of a recorded event. An event without one has the zero Metadata. An envelope that is
// not of the right form is an *UnusableError.
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

// EntityID is the id of the entity whose events a stream holds: the part of its name behind the first dash, or "". It is
// also the subject of the stream's data key.
func EntityID(stream string) string {
	for i := range len(stream) {
		if stream[i] == '-' {
			return stream[i+1:]
		}
	}
	return ""
}
