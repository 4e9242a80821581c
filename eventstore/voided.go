package eventstore

import (
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
