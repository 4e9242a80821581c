package vault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/event"
)

// This file reads the log for Bound: which subjects must have a key (their account was opened with a sealed field), which
// must not (their account was erased), and whether the keys open the sealed fields.

// accountStreams selects the streams that hold each subject's first sealed field (its opening) and its erasure.
var accountStreams = eventstore.Filter{"account"}

const (
	batchSize  = 500 // subjects whose rows are read in one query
	maxMissing = 100 // subjects without a key after which testKeys gives up
)

// sealedField is a sealed field and the stream that it was sealed for.
type sealedField struct {
	stream string
	text   event.Personal
}

// sealedFieldsOf returns the sealed fields of an event.
func sealedFieldsOf(r eventstore.RecordedEvent) (found []event.Personal, err error) {
	kind, known := event.Lookup(r.Type)
	if !known || !kind.HasPersonal {
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

// firstSealed returns the first sealed field in the streams of a subject; nil: they hold none. It is nearly always in
// the first event that is read: the opening of the account.
func firstSealed(ctx context.Context, log eventstore.Store, subject string) (*sealedField, error) {
	for _, category := range sealedCategories() {
		if f, err := firstSealedIn(ctx, log, category+"-"+subject); f != nil || err != nil {
			return f, err
		}
	}
	return nil, nil
}

// sealedCategories returns the categories of streams with sealed fields, accountStreams first.
func sealedCategories() []string {
	all := slices.Clone([]string(accountStreams))
	for _, kind := range event.All() {
		if kind.HasPersonal && !slices.Contains(all, kind.Category()) {
			all = append(all, kind.Category())
		}
	}
	return all
}

// firstSealedIn is firstSealed for one stream.
func firstSealedIn(ctx context.Context, log eventstore.Store, stream string) (*sealedField, error) {
	for r, err := range log.ReadStream(ctx, stream, 0, eventstore.Forward) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		found, err := sealedFieldsOf(r)
		if err == nil && len(found) == 0 {
			found, err = sealedFieldsOfStaging(ctx, log, r)
		}
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			return &sealedField{stream, found[0]}, nil
		}
	}
	return nil, nil
}

// sealedFieldsOfStaging returns a sealed field of the staging stream that an event commits, if it is a commit. It is sealed
// for the stream of that event, not for the staging stream.
func sealedFieldsOfStaging(ctx context.Context, log eventstore.Store, r eventstore.RecordedEvent) ([]event.Personal, error) {
	e, err := event.Decode(r.Type, r.Data)
	commit, ok := e.(event.StagedCommit)
	if err != nil || !ok {
		return nil, nil // no field is known of an event that cannot be decoded
	}
	name, _, _ := commit.StagedStream()
	f, err := firstSealedIn(ctx, log, name)
	if f == nil || err != nil {
		return nil, err
	}
	return []event.Personal{f.text}, nil
}

// isErased reports whether the log holds the erasure of a subject.
func isErased(ctx context.Context, log eventstore.Store, subject string) (bool, error) {
	for _, category := range accountStreams {
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

// scanSubjects calls each for every account opening (with its first sealed field) and every erasure (with nil)
// after a checkpoint, in the order of the log. end is the checkpoint that it reached.
func (b *Bound) scanSubjects(ctx context.Context, after eventstore.Checkpoint, each func(subject string, opening *sealedField) error) (end eventstore.Checkpoint, err error) {
	end = after
	for s, err := range b.log.ReadAll(ctx, after, accountStreams) {
		if err != nil {
			return end, err
		}
		end = s.Checkpoint
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		subject := eventstore.EntityID(s.Event.Stream)
		if s.Event.Type == (event.AccountErased{}).EventType() {
			err = each(subject, nil)
		} else if found, bad := sealedFieldsOf(s.Event); bad == nil && len(found) > 0 { // an event that cannot be decoded stops only its account, elsewhere
			err = each(subject, &sealedField{s.Event.Stream, found[0]})
		}
		if err != nil {
			return end, err
		}
	}
	return end, ctx.Err()
}

// errStopScan is what a callback of scanSubjects returns to end the scan early. scanSubjects returns it unchanged.
var errStopScan = errors.New("enough")

// hasSealedField reports whether the log holds any sealed field.
func (b *Bound) hasSealedField(ctx context.Context) (bool, error) {
	_, err := b.scanSubjects(ctx, eventstore.Checkpoint{}, func(_ string, opening *sealedField) error {
		if opening != nil {
			return errStopScan
		}
		return nil
	})
	if errors.Is(err, errStopScan) {
		return true, nil
	}
	return false, err
}

// keyEvidence is what testKeys found: whether the keys belong to the log.
type keyEvidence struct {
	sealed     bool     // the log holds sealed fields
	opened     bool     // one of them was opened
	mismatched string   // a subject whose field does not open with its key
	missing    []string // subjects that have no key and were not erased
}

// testKeys tries the keys on the sealed fields of the log until one field opens, one does not, or maxMissing keys are
// missing. One field is enough: keys are random, so a key that opens a field was made for this log.
func (b *Bound) testKeys(ctx context.Context) (found keyEvidence, err error) {
	_, err = b.scanSubjects(ctx, eventstore.Checkpoint{}, func(subject string, opening *sealedField) error {
		if opening == nil {
			return nil
		}
		found.sealed = true
		key, err := b.vault.readUncheckedKey(ctx, subject)
		var wrapped *wrappedError
		switch {
		case err == nil && eventstore.CanUnseal(key, opening.stream, opening.text):
			found.opened = true
			return errStopScan
		case err == nil || errors.As(err, &wrapped):
			found.mismatched = subject
			return errStopScan
		case !errors.Is(err, eventstore.ErrNoKey) && !errors.Is(err, eventstore.ErrDestroyed):
			return err
		}
		erased, err := isErased(ctx, b.log, subject)
		if err == nil && !erased {
			found.missing = append(found.missing, subject)
		}
		if len(found.missing) == maxMissing {
			return errStopScan
		}
		return err
	})
	if errors.Is(err, errStopScan) {
		err = nil
	}
	return found, err
}

// keyComparison collects subjects while the log is scanned, and compares batchSize of them with the database at a
// time.
type keyComparison struct {
	vault   *Vault
	created map[string]bool // must have a key; in this batch
	erased  map[string]bool // must have none; in this batch
	missing map[string]bool // result: have no key and should; over all batches
}

// newKeyComparison returns an empty comparison.
func newKeyComparison(v *Vault) *keyComparison {
	return &keyComparison{v, map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

// compareKeys compares the keys with the log after the position of the binding. It destroys the keys of erased subjects
// again (a restored backup may have them) and returns the subjects that lack a key. If none does, it stores the new
// position. Another log says nothing about these keys: accounts that it erased may bear the same ids.
func (b *Bound) compareKeys(ctx context.Context, current binding) (missing map[string]bool, err error) {
	from, err := current.checkpoint()
	if err != nil {
		return nil, err
	}
	c := newKeyComparison(b.vault)
	to, err := b.scanSubjects(ctx, from, func(subject string, opening *sealedField) error { return c.addSubject(ctx, subject, opening) })
	var diverged *eventstore.DivergedError
	if errors.As(err, &diverged) && !diverged.IsOtherLog { // an older copy of the log was restored: compare from its beginning
		c = newKeyComparison(b.vault)
		from = eventstore.Checkpoint{}
		to, err = b.scanSubjects(ctx, from, func(subject string, opening *sealedField) error { return c.addSubject(ctx, subject, opening) })
	}
	if err == nil {
		err = c.compareBatch(ctx)
	}
	if err == nil && to != from && (len(c.missing) == 0 || b.AcceptLostKeys) {
		err = b.vault.storeCheckpoint(ctx, current, to)
	}
	return c.missing, err
}

// addSubject adds an opening, or an erasure if opening is nil, to the batch, and compares a full batch.
func (c *keyComparison) addSubject(ctx context.Context, subject string, opening *sealedField) error {
	if opening != nil {
		c.created[subject] = true
	} else {
		delete(c.created, subject)
		delete(c.missing, subject)
		c.erased[subject] = true
	}
	if len(c.created)+len(c.erased) < batchSize {
		return nil
	}
	return c.compareBatch(ctx)
}

// compareBatch reads the rows of the batch, adds subjects without a row to missing, destroys the keys of erased ones, and
// empties the batch.
func (c *keyComparison) compareBatch(ctx context.Context) error {
	subjects := slices.Concat(slices.Collect(maps.Keys(c.created)), slices.Collect(maps.Keys(c.erased)))
	if len(subjects) == 0 {
		return nil
	}
	db, err := c.vault.openDatabase(ctx)
	if err != nil {
		return err
	}
	rows, err := sqldb.LoadByKeys(ctx, db, keyTable, subjects)
	if err != nil {
		return err
	}
	for _, r := range rows {
		delete(c.created, r.Subject)
		if r.Destroyed != 0 {
			delete(c.erased, r.Subject)
		}
	}
	maps.Copy(c.missing, c.created)
	toDestroy := slices.Collect(maps.Keys(c.erased))
	clear(c.created)
	clear(c.erased)
	if len(toDestroy) == 0 {
		return nil
	}
	return c.vault.destroyKeys(ctx, toDestroy...)
}
