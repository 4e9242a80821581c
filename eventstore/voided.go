package eventstore

import (
	"context"
	"reflect"

	"lieudit/schemas/event"
)

// IsCorrection says whether events of a type name another one of their stream that is passed over.
func IsCorrection(name string) bool {
	t, known := event.Lookup(name)
	return known && t.Go.Implements(reflect.TypeFor[event.Correction]())
}

// Corrects is the revision of the event that a recorded one says is passed over. It is false for an event that says no
// such thing.
func Corrects(r Recorded) (Revision, bool) {
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
	return Revision(correction.Voids()), true
}

// CheckEvent is nil for an event that can be used, with all that it makes real, and an *UnusableError for one that cannot.
// It needs no vault: whether personal fields open is another question than whether they have the form of sealed ones.
func CheckEvent(ctx context.Context, store Store, r Recorded) error {
	e, err := checkForm(r)
	commit, stages := e.(event.Staged)
	if err != nil || !stages {
		return err
	}
	rows, err := Staged(ctx, store, r, commit)
	for i := 0; i < len(rows) && err == nil; i++ {
		_, err = checkForm(rows[i])
	}
	return err
}

func checkForm(r Recorded) (event.Event, error) {
	e, err := DecodeSealed(r)
	if err == nil {
		_, err = r.Meta()
	}
	if err != nil {
		return nil, err
	}
	_, err = event.MapPersonal(e, func(p event.Personal) (event.Personal, error) {
		_, err := boxOf(p)
		return p, err
	})
	if err != nil {
		return nil, unusable(r, err)
	}
	return e, nil
}
