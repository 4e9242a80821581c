package eventstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"

	"lieudit/schemas/event"
)

// ReadStagedEvents reads the events that commit makes real, as if they stood in its place: with its stream, position,
// revision, time and envelope, and their own id, type and data. A missing or incomplete staging stream is an *UnusableError.
// A commit that names no stream has no events; earlier releases wrote one when staging failed.
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

// maxPreallocatedRows bounds the memory allocated for the count that a commit claims.
const maxPreallocatedRows = 4096

// IsEmptyCommit reports whether an event is a commit that names no stream. It changed nothing, so folds skip it.
func IsEmptyCommit(e event.Event) bool {
	commit, ok := e.(event.StagedCommit)
	if !ok {
		return false
	}
	stream, _, _ := commit.StagedStream()
	return EntityID(stream) == ""
}

// IsCorrection reports whether events of a type void another event of their stream.
func IsCorrection(name string) bool {
	t, known := event.Lookup(name)
	return known && t.GoType.Implements(reflect.TypeFor[event.Correction]())
}

// VoidedRevision returns the revision of the event that r voids, or false if r voids nothing. A correction that cannot be
// decoded voids nothing: its own fold reports it as an *UnusableError.
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

// ValidateEvent is nil for an event that can be used, with everything it commits, and otherwise an *UnusableError. It needs
// no vault: it checks that personal texts have the form of sealed ones, not that they open.
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

// DecodeStrict is DecodeSealed that also checks the envelope and the form of the personal texts. A wrong form is an
// *UnusableError, a type that is not in the catalog is event.ErrUnknownType.
func DecodeStrict(r RecordedEvent) (event.Event, error) {
	var m Metadata
	e, err := DecodeSealed(r)
	if err == nil {
		m, err = r.DecodeMetadata()
	}
	if err != nil {
		return nil, err
	}
	_, err = event.MapPersonal(e, checkStoredForm)
	if err == nil && m.SealedReason != "" {
		_, err = parseSealedField(m.SealedReason)
	}
	if err != nil {
		return nil, newUnusableError(r, err)
	}
	return e, nil
}

// checkStoredForm fails for a personal text that is neither sealed nor marked as clear.
func checkStoredForm(p event.Personal) (event.Personal, error) {
	if _, ok := p.ClearText(); ok {
		return p, nil
	}
	_, err := parseSealedField(p)
	return p, err
}
