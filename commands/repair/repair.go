// Package repair lets a stream go on that holds an event which cannot be used. It never edits: it appends one correction
// for each such event, and whoever folds the stream folds it without those events from then on. Data passes through it
// in one go: Repair reads the account's streams, eventstore.CheckEvent says which events are unusable, and one append a
// stream names them.
package repair

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// ErrNothing: the log holds no such streams.
var ErrNothing = errors.New("no streams of that account")

// Repairs takes the command on accounts that are stopped. It is safe for concurrent use.
type Repairs struct {
	store eventstore.Store
	codec *eventstore.Codec
}

// New takes repairs of the streams of a log.
func New(store eventstore.Store, codec *eventstore.Codec) *Repairs { return &Repairs{store, codec} }

// Voided is an event that is passed over from now on.
type Voided struct {
	Stream   string
	Position eventstore.Position
	event.EventVoided
}

// corrections make the event that says so in the streams of a category.
var corrections = map[string]func(event.EventVoided) event.Event{
	"account":   func(e event.EventVoided) event.Event { return event.AccountEventVoided{EventVoided: e} },
	"locations": func(e event.EventVoided) event.Event { return event.LocationsEventVoided{EventVoided: e} },
	"token":     func(e event.EventVoided) event.Event { return event.TokenEventVoided{EventVoided: e} },
}

// Account voids every event of an account's streams that cannot be used, and says which. There are none where a repair was
// made before: twice is once. An account without streams is ErrNothing.
func (r *Repairs) Account(ctx context.Context, account string, in commands.Intent) ([]Voided, error) {
	return r.streams(ctx, in, "account-"+account, "locations-"+account)
}

// Token is Account for the stream of a customer-area token.
func (r *Repairs) Token(ctx context.Context, token string, in commands.Intent) ([]Voided, error) {
	return r.streams(ctx, in, "token-"+token)
}

func (r *Repairs) streams(ctx context.Context, in commands.Intent, names ...string) ([]Voided, error) {
	var all []Voided
	known := false
	for _, stream := range names {
		found, there, err := r.stream(ctx, stream, in)
		if err != nil {
			return all, fmt.Errorf("repair %s: %w", stream, err)
		}
		all, known = append(all, found...), known || there
	}
	if !known {
		return nil, ErrNothing
	}
	return all, nil
}

// stream repairs one stream, if it is there. A write that comes between is looked at too.
func (r *Repairs) stream(ctx context.Context, stream string, in commands.Intent) (found []Voided, there bool, err error) {
	command := uuid.New()
	for attempt := byte(0); ; attempt++ {
		found, last, err := r.unusable(ctx, stream)
		if err != nil || len(found) == 0 {
			return nil, last != eventstore.NoStream, err
		}
		events := make([]event.Event, len(found))
		for i, v := range found {
			events[i] = corrections[category(stream)](v.EventVoided)
		}
		batch, err := r.codec.Encode(ctx, stream, uuid.NewSHA1(command, []byte{attempt}), in.Metadata(command), events)
		if err == nil {
			_, err = commands.Settle(ctx, r.store, stream, last, batch)
		}
		if !errors.Is(err, eventstore.ErrConflict) {
			return found, true, err
		}
	}
}

// unusable are the events of a stream that cannot be used and that no correction names, and the revision it ends at.
func (r *Repairs) unusable(ctx context.Context, stream string) ([]Voided, eventstore.Revision, error) {
	last := eventstore.NoStream
	voided, err := commands.Voided(ctx, r.store, stream, 0)
	if err != nil {
		return nil, last, err
	}
	var found []Voided
	for e, err := range r.store.ReadStream(ctx, stream, 0, eventstore.Forward) {
		if err != nil {
			return nil, last, err
		}
		last = e.Revision
		if voided[e.Revision] {
			continue
		}
		err = eventstore.CheckEvent(ctx, r.store, e)
		var unusable *eventstore.UnusableError
		switch {
		case errors.As(err, &unusable):
			found = append(found, Voided{stream, e.Position, event.EventVoided{
				Revision: int64(e.Revision), Event: e.ID.String(), Type: e.Type, Why: unusable.Err.Error()}})
		case err != nil:
			return nil, last, err
		}
	}
	return found, last, nil
}

func category(stream string) string {
	return stream[:len(stream)-len(eventstore.Subject(stream))-1]
}
