package eventstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"

	"lieudit/schemas/event"
)

// ReadStagedEvents reads the events that a commit makes real, as if they stood in its place: they bear its stream, position,
// revision, time and envelope. That a commit is on the log and what it names is not, or not whole, is an *UnusableError. A
// commit that names no stream, which earlier releases wrote when a staging failed, makes nothing real.
func ReadStagedEvents(ctx context.Context, store Store, commit RecordedEvent, e event.StagedCommit) ([]RecordedEvent, error) {
	if IsEmptyCommit(e) {
		return nil, nil
	}
	stream, count, digest := e.StagedStream()
	hash := sha256.New()
	rows := make([]RecordedEvent, 0, max(0, min(count, maxPreallocatedRows)))
	for r, err := range store.ReadStream(ctx, stream, 0, Forward) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		if len(rows) == count {
			break
		}
		hash.Write(r.Data)
		row := commit
		row.ID, row.Type, row.Data = r.ID, r.Type, r.Data
		rows = append(rows, row)
	}
	if sum := hash.Sum(nil); len(rows) != count || !bytes.Equal(sum, digest) {
		return nil, newUnusableError(commit, fmt.Errorf("%s does not hold what it commits", stream))
	}
	return rows, nil
}

// maxPreallocatedRows bounds the room that is set aside for what a commit says it holds.
const maxPreallocatedRows = 4096

// IsEmptyCommit says whether an event is a commit that names no stream. It changed nothing: whoever folds passes over it.
func IsEmptyCommit(e event.Event) bool {
	commit, ok := e.(event.StagedCommit)
	if !ok {
		return false
	}
	stream, _, _ := commit.StagedStream()
	return EntityID(stream) == ""
}

// IsCorrection says whether events of a type name another one of their stream that is passed over.
func IsCorrection(name string) bool {
	t, known := event.Lookup(name)
	return known && t.GoType.Implements(reflect.TypeFor[event.Correction]())
}

// VoidedRevision is the revision of the event that a recorded one says is passed over. It is false for an event that says no
// such thing.
func VoidedRevision(r RecordedEvent) (Revision, bool) {
	if !IsCorrection(r.Type) {
		return 0, false
	}
	e, err := DecodeSealed(r)
	if err != nil {
		return 0, false
	}
	correction, ok := e.(event.Correction)
	if !ok {
		return 0, false
	}
	return Revision(correction.VoidedRevision()), true
}

// ValidateEvent is nil for an event that can be used, with all that it makes real, and an *UnusableError for one that cannot.
// It needs no vault: whether personal fields open is another question than whether they have the form of sealed ones.
func ValidateEvent(ctx context.Context, store Store, r RecordedEvent) error {
	e, err := DecodeStrict(r)
	commit, stages := e.(event.StagedCommit)
	if err != nil || !stages {
		return err
	}
	rows, err := ReadStagedEvents(ctx, store, r, commit)
	for i := 0; i < len(rows) && err == nil; i++ {
		_, err = DecodeStrict(rows[i])
	}
	return err
}

// DecodeStrict is the event that r records, its personal fields as they stand on the log. It is an *UnusableError where the
// event, its envelope or a personal field is not of the form it has to be, and event.ErrUnknownType where the catalog does
// not hold it.
func DecodeStrict(r RecordedEvent) (event.Event, error) {
	e, err := DecodeSealed(r)
	if err == nil {
		_, err = r.DecodeMetadata()
	}
	if err != nil {
		return nil, err
	}
	_, err = event.MapPersonal(e, func(p event.Personal) (event.Personal, error) {
		_, err := parseSealedField(p)
		return p, err
	})
	if err != nil {
		return nil, newUnusableError(r, err)
	}
	return e, nil
}
