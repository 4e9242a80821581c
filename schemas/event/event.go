// Package event is the catalog of everything that can happen: each event is one struct with a literal type
// name and one line in the catalog. Its codec, JSON Schema, message name and audit sentence all come
// from there. A published shape never changes: a new one gets a new name (".v2").
package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Event is a fact, in the past tense. EventType is its wire name for ever: category.noun-past.vN.
type Event interface{ EventType() string }

// validator is an event with a rule that the types of its fields do not say. Decode refuses one that breaks it, so that
// nobody who folds it has to.
type validator interface{ validate() error }

// Personal is text about a person. In the log it is encrypted with the data key of the subject whose stream it
// is in, and it reads as "" once that key is destroyed.
type Personal string

// Subject names what an event is about, for the audit trail. An empty field stands for what the event's stream says: the
// account, the token or the locations of the stream's id.
type Subject struct {
	IsKey   bool   // it is about a key of the account, or about the account's keys if ID is empty
	ID      string // of the key or token, or the code of the referential
	Account string // in whose audit trail the event is shown; only for streams that belong to no account
}

// Subjected is an event about something that its stream does not name.
type Subjected interface {
	Event
	AuditSubject() Subject
}

// ErrUnknownType: the catalog holds no such event.
var ErrUnknownType = errors.New("unknown event type")

// Type is one line of the catalog.
type Type struct {
	Name           string // the wire name
	Sentence       string // what an auditor reads; {field} stands for a field's value
	GoType         reflect.Type
	effect         effect
	decode         func([]byte) (Event, error)
	personalFields personalFields
}

// effect says how much the readers that must know every event of a category can pass over. The zero effect is nothing.
type effect uint8

const (
	keepsAccess effect = iota + 1 // it changes nothing that keys and tokens give
	recordOnly                    // it changes nothing at all: it is on the log for the audit trail
)

// KeepsAccess says that the event changes nothing that keys and tokens give, so that the key ring passes it over.
func (t Type) KeepsAccess() bool { return t.effect != 0 }

// IsRecordOnly says that the event changes nothing but the audit trail, so that an exhaustive read model needs no handler
// for it.
func (t Type) IsRecordOnly() bool { return t.effect == recordOnly }

// with is the catalog line with an effect.
func (t Type) with(e effect) Type {
	t.effect = e
	return t
}

// Category is the first word of the wire name, which is the category of the streams it stands in.
func (t Type) Category() string {
	category, _, _ := strings.Cut(t.Name, ".")
	return category
}

// define makes the catalog line of E.
func define[E Event](sentence string) Type {
	var zero E
	return Type{
		Name: zero.EventType(), Sentence: sentence, GoType: reflect.TypeFor[E](),
		personalFields: findPersonalFields(reflect.TypeFor[E]()),
		decode: func(data []byte) (Event, error) {
			var e E
			if err := json.Unmarshal(data, &e); err != nil {
				return e, err
			}
			if v, ok := any(e).(validator); ok {
				return e, v.validate()
			}
			return e, nil
		},
	}
}

// All is the catalog, in the order it is written in.
func All() []Type { return catalog }

// Lookup finds the line of a wire name.
func Lookup(name string) (Type, bool) {
	t, ok := byName[name]
	return t, ok
}

// Decode reads the event of a wire name. Fields the struct does not have are ignored, so that an older binary
// reads what a newer one wrote.
func Decode(name string, data []byte) (Event, error) {
	t, ok := byName[name]
	if !ok {
		return nil, fmt.Errorf("%w %q", ErrUnknownType, name)
	}
	e, err := t.decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	return e, nil
}

// byName is the catalog by wire name; like the catalog it is never written to.
var byName = func() map[string]Type {
	m := make(map[string]Type, len(catalog))
	for _, t := range catalog {
		m[t.Name] = t
	}
	return m
}()
