// Package repair voids the unusable events of a stream, so that the stream can be folded again. An unusable event is one that
// eventstore.ValidateEvent refuses, for instance because it cannot be decoded. The log is never edited. For each unusable
// event the package appends one correction (event.Correction), which names it; from then on every reader that folds the
// stream skips the named event.
//
//	Repairs.RepairAccount
//	  └ repairStream, for each stream of the account
//	      │ findUnusable                  ReadStream, eventstore.ValidateEvent
//	      │ newCorrection                 one correction for each event found
//	      └ eventstore.AppendUntilKnown   one append; a conflict leads back to findUnusable
//
// The read side follows in projections/projector, which writes the account's rows again.
package repair

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/refusal"
)

// ErrNoStreams means that the log holds no stream of that account or token. It is refusal.NotFound for the client.
var ErrNoStreams = fmt.Errorf("no streams of that account: %w", refusal.NotFound)

// Repairs handles the repair command. It is safe for concurrent use.
type Repairs struct {
	store eventstore.Store
	codec *eventstore.Codec
}

// New returns the handler for the streams of a log.
func New(store eventstore.Store, codec *eventstore.Codec) *Repairs { return &Repairs{store, codec} }

// VoidedEvent is an unusable event that a repair has voided: readers skip it from now on.
type VoidedEvent struct {
	Stream   string
	Position eventstore.Position
	event.EventVoided
}

// newCorrection has, by category of stream, the function that makes its type of correction.
var newCorrection = map[string]func(event.EventVoided) event.Event{
	"account":   func(e event.EventVoided) event.Event { return event.AccountEventVoided{EventVoided: e} },
	"locations": func(e event.EventVoided) event.Event { return event.LocationsEventVoided{EventVoided: e} },
	"token":     func(e event.EventVoided) event.Event { return event.TokenEventVoided{EventVoided: e} },
}

// RepairAccount voids every unusable event of an account's streams and returns them. It is idempotent: a second repair finds
// nothing. For an account without streams it returns ErrNoStreams.
func (r *Repairs) RepairAccount(ctx context.Context, account string, meta commands.Metadata) ([]VoidedEvent, error) {
	return r.repairStreams(ctx, meta, "account-"+account, "locations-"+account)
}

// RepairToken is RepairAccount for the stream of a customer-area token.
func (r *Repairs) RepairToken(ctx context.Context, token string, meta commands.Metadata) ([]VoidedEvent, error) {
	return r.repairStreams(ctx, meta, "token-"+token)
}

// repairStreams repairs streams in their order. It stops at the first error and returns what was voided before it.
func (r *Repairs) repairStreams(ctx context.Context, meta commands.Metadata, names ...string) ([]VoidedEvent, error) {
	var all []VoidedEvent
	anyExists := false
	for _, stream := range names {
		found, exists, err := r.repairStream(ctx, stream, meta)
		if err != nil {
			return all, fmt.Errorf("repair %s: %w", stream, err)
		}
		all, anyExists = append(all, found...), anyExists || exists
	}
	if !anyExists {
		return nil, ErrNoStreams
	}
	return all, nil
}

// repairStream repairs one stream; exists reports whether there is one. If another write is appended between the read and the
// append, it reads the stream again.
func (r *Repairs) repairStream(ctx context.Context, stream string, meta commands.Metadata) (found []VoidedEvent, exists bool, err error) {
	commandID := uuid.New()
	for attempt := byte(0); ; attempt++ {
		found, last, err := r.findUnusable(ctx, stream)
		if err != nil || len(found) == 0 {
			return nil, last != eventstore.NoStream, err
		}
		events := make([]event.Event, len(found))
		for i, v := range found {
			events[i] = newCorrection[categoryOf(stream)](v.EventVoided)
		}
		batch, err := r.codec.Encode(ctx, stream, uuid.NewSHA1(commandID, []byte{attempt}), meta.EventMetadata(commandID), events)
		if err == nil {
			_, err = eventstore.AppendUntilKnown(ctx, r.store, stream, last, batch, eventstore.Resend{})
		}
		if !errors.Is(err, eventstore.ErrConflict) {
			return found, true, err
		}
	}
}

// findUnusable returns the unusable events of a stream that no correction names yet, and the stream's last revision.
func (r *Repairs) findUnusable(ctx context.Context, stream string) ([]VoidedEvent, eventstore.Revision, error) {
	last := eventstore.NoStream
	voided, err := commands.ReadVoidedRevisions(ctx, r.store, stream, 0)
	if err != nil {
		return nil, last, err
	}
	var found []VoidedEvent
	for e, err := range r.store.ReadStream(ctx, stream, 0, eventstore.Forward) {
		if err != nil {
			return nil, last, err
		}
		last = e.Revision
		if voided[e.Revision] {
			continue
		}
		err = eventstore.ValidateEvent(ctx, r.store, e)
		var unusable *eventstore.UnusableError
		switch {
		case errors.As(err, &unusable):
			found = append(found, VoidedEvent{stream, e.Position, event.EventVoided{
				Revision: int64(e.Revision), EventID: e.ID.String(), Type: e.Type, Reason: unusable.Err.Error()}})
		case err != nil:
			return nil, last, err
		}
	}
	return found, last, nil
}

// categoryOf returns the part of a stream's name before the first dash.
func categoryOf(stream string) string {
	return stream[:len(stream)-len(eventstore.EntityID(stream))-1]
}
