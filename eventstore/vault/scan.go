package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// openings are the streams in which every subject begins, with a field that is sealed, and ends, with its erasure.
var openings = eventstore.Filter{"account"}

const (
	together = 500 // subjects that are asked for at a time
	hopeless = 100 // subjects without a key after which no other is tried
)

// field is a sealed field where it stands on the log.
type field struct {
	stream string
	text   event.Personal
}

// fieldsOf are the sealed fields of an event.
func fieldsOf(r eventstore.Recorded) (found []event.Personal, err error) {
	kind, known := event.Lookup(r.Type)
	if !known || kind.Personals() == 0 {
		return nil, nil
	}
	e, err := event.Decode(r.Type, r.Data)
	if err == nil {
		_, err = event.MapPersonal(e, func(p event.Personal) (event.Personal, error) {
			found = append(found, p)
			return p, nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
	}
	return found, nil
}

// firstSealed is the first sealed field in the streams of a subject, nil when they hold none. It is nearly always in
// the first event that is read: the opening of the account.
func firstSealed(ctx context.Context, log eventstore.Store, subject string) (*field, error) {
	for _, category := range sealing() {
		if f, err := firstSealedIn(ctx, log, category+"-"+subject); f != nil || err != nil {
			return f, err
		}
	}
	return nil, nil
}

// sealing are the categories of streams with sealed fields, those in which subjects begin first.
func sealing() []string {
	all := slices.Clone([]string(openings))
	for _, kind := range event.All() {
		if kind.Personals() > 0 && !slices.Contains(all, kind.Category()) {
			all = append(all, kind.Category())
		}
	}
	return all
}

func firstSealedIn(ctx context.Context, log eventstore.Store, stream string) (*field, error) {
	for r, err := range log.ReadStream(ctx, stream, 0, eventstore.Forward) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		found, err := fieldsOf(r)
		if err == nil && len(found) == 0 {
			found, err = stagedFields(ctx, log, r)
		}
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			return &field{stream, found[0]}, nil
		}
	}
	return nil, nil
}

// stagedFields are sealed fields that an event makes real. They are sealed for its stream.
func stagedFields(ctx context.Context, log eventstore.Store, r eventstore.Recorded) ([]event.Personal, error) {
	e, err := event.Decode(r.Type, r.Data)
	commit, ok := e.(event.Staged)
	if err != nil || !ok {
		return nil, nil // one that cannot be decoded seals nothing that is known of
	}
	name, _, _ := commit.Staging()
	f, err := firstSealedIn(ctx, log, name)
	if f == nil || err != nil {
		return nil, err
	}
	return []event.Personal{f.text}, nil
}

// isErased says whether the log holds the erasure of a subject.
func isErased(ctx context.Context, log eventstore.Store, subject string) (bool, error) {
	for _, category := range openings {
		stream := category + "-" + subject
		for r, err := range log.ReadStream(ctx, stream, eventstore.End, eventstore.Backward) {
			if err != nil {
				return false, fmt.Errorf("read %s: %w", stream, err)
			}
			if r.Type == (event.AccountErased{}).EventType() {
				return true, nil
			}
		}
	}
	return false, nil
}

// subjects are the accounts that the log opens and erases after a mark, one after the other. The last thing said is where
// the reading ended.
func (b *Bound) subjects(ctx context.Context, after eventstore.Mark, each func(subject string, opening *field) error) (end eventstore.Mark, err error) {
	end = after
	for s, err := range b.log.ReadAll(ctx, after, openings) {
		if err != nil {
			return end, err
		}
		end = s.Mark
		if s.Kind != eventstore.Event {
			continue
		}
		subject := eventstore.Subject(s.Event.Stream)
		if s.Event.Type == (event.AccountErased{}).EventType() {
			err = each(subject, nil)
		} else if found, bad := fieldsOf(s.Event); bad == nil && len(found) > 0 { // one that cannot be decoded is its account's matter
			err = each(subject, &field{s.Event.Stream, found[0]})
		}
		if err != nil {
			return end, err
		}
	}
	return end, ctx.Err()
}

// errEnough ends a reading early.
var errEnough = errors.New("enough")

// holdsSealed says whether the log holds any sealed field.
func (b *Bound) holdsSealed(ctx context.Context) (bool, error) {
	_, err := b.subjects(ctx, eventstore.Mark{}, func(_ string, opening *field) error {
		if opening != nil {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, err
}

// evidence is what tells whether keys are a log's.
type evidence struct {
	sealed  bool     // the log holds sealed fields
	opened  bool     // one of them was opened
	closed  string   // a subject whose field does not open with its key
	missing []string // subjects that have no key and were not erased
}

// tryKeys looks for a sealed field that opens with the key of its subject.
func (b *Bound) tryKeys(ctx context.Context) (found evidence, err error) {
	_, err = b.subjects(ctx, eventstore.Mark{}, func(subject string, opening *field) error {
		if opening == nil {
			return nil
		}
		found.sealed = true
		key, err := b.vault.Key(ctx, subject, false)
		var wrapped *wrappedError
		switch {
		case err == nil && eventstore.Opens(key, opening.stream, opening.text):
			found.opened = true
			return errEnough
		case err == nil || errors.As(err, &wrapped):
			found.closed = subject
			return errEnough
		case !errors.Is(err, eventstore.ErrNoKey) && !errors.Is(err, eventstore.ErrDestroyed):
			return err
		}
		erased, err := isErased(ctx, b.log, subject)
		if err == nil && !erased {
			found.missing = append(found.missing, subject)
		}
		if len(found.missing) == hopeless {
			return errEnough
		}
		return err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return found, err
}

// comparison collects, while the log is read, which subjects lack their keys.
type comparison struct {
	vault   *Vault
	opened  map[string]bool // not asked for yet
	erased  map[string]bool // to be destroyed again
	missing map[string]bool
}

// follow compares the keys with what the log holds after the place they were compared up to: the erasures there are destroyed
// again, and gives the subjects that lack a key. Where none does, the database notes how far it was compared. Another log
// says nothing about these keys: accounts that it erased may bear the same ids.
func (b *Bound) follow(ctx context.Context, at binding) (missing map[string]bool, err error) {
	from, err := at.mark()
	if err != nil {
		return nil, err
	}
	c := &comparison{b.vault, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	to, err := b.subjects(ctx, from, func(subject string, opening *field) error { return c.take(ctx, subject, opening) })
	var diverged *eventstore.DivergedError
	if errors.As(err, &diverged) && !diverged.Other { // an older copy of the log was restored: it is compared from its beginning
		*c = comparison{b.vault, map[string]bool{}, map[string]bool{}, map[string]bool{}}
		from = eventstore.Mark{}
		to, err = b.subjects(ctx, from, func(subject string, opening *field) error { return c.take(ctx, subject, opening) })
	}
	if err == nil {
		err = c.settle(ctx)
	}
	if err == nil && to != from && (len(c.missing) == 0 || b.AcceptLost) {
		err = b.vault.advance(ctx, at, to)
	}
	return c.missing, err
}

func (c *comparison) take(ctx context.Context, subject string, opening *field) error {
	if opening != nil {
		c.opened[subject] = true
	} else {
		delete(c.opened, subject)
		delete(c.missing, subject)
		c.erased[subject] = true
	}
	if len(c.opened)+len(c.erased) < together {
		return nil
	}
	return c.settle(ctx)
}

// settle asks for the keys of the subjects collected so far, and destroys those that were erased.
func (c *comparison) settle(ctx context.Context) error {
	asked := make([]string, 0, together)
	for _, set := range []map[string]bool{c.opened, c.erased} {
		for subject := range set {
			asked = append(asked, subject)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	db, err := c.vault.reach(ctx)
	if err != nil {
		return err
	}
	rows, err := table.Load(ctx, db, keys, asked)
	if err != nil {
		return err
	}
	for _, r := range rows {
		delete(c.opened, r.Subject)
		if r.Destroyed != 0 {
			delete(c.erased, r.Subject)
		}
	}
	for subject := range c.opened {
		c.missing[subject] = true
	}
	again := make([]string, 0, len(c.erased))
	for subject := range c.erased {
		again = append(again, subject)
	}
	clear(c.opened)
	clear(c.erased)
	if len(again) == 0 {
		return nil
	}
	return c.vault.destroy(ctx, again...)
}
