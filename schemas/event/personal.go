package event

import (
	"fmt"
	"reflect"
)

// personal is where the personal texts of a type are, and how to change them.
type personal struct {
	places int
	change changer
	unfit  error // why they cannot all be found, nil when they can
}

// transform is what happens to one personal text.
type transform = func(Personal) (Personal, error)

// changer changes every personal text in a value that can be set. What the value shares with others is copied first.
type changer func(reflect.Value, transform) error

// personalOf looks for personal texts in a struct and in all it holds. Where one could hide from it, the type is unfit.
func personalOf(t reflect.Type) personal {
	s := search{within: map[reflect.Type]bool{}}
	change := s.of(t)
	return personal{s.places, change, s.unfit}
}

// search is one walk through a type.
type search struct {
	within map[reflect.Type]bool // the types around the one that is looked at
	places int
	unfit  error
}

// of is nil when the type holds nothing personal.
func (s *search) of(t reflect.Type) changer {
	if t == reflect.TypeFor[Personal]() {
		s.places++
		return changeText
	}
	if s.within[t] {
		s.refuse("%s holds itself", t)
		return nil
	}
	s.within[t] = true
	defer delete(s.within, t)
	switch t.Kind() {
	case reflect.Struct:
		return s.fields(t)
	case reflect.Pointer:
		return through(s.of(t.Elem()), changePointer)
	case reflect.Slice:
		return through(s.of(t.Elem()), changeSlice)
	case reflect.Array:
		return through(s.of(t.Elem()), changeArray)
	case reflect.Map:
		if s.of(t.Key()) != nil {
			s.refuse("the keys of %s are personal", t)
		}
		return through(s.of(t.Elem()), changeMap)
	case reflect.Interface:
		s.refuse("%s may hold anything", t)
	}
	return nil
}

func (s *search) refuse(format string, t reflect.Type) {
	if s.unfit == nil {
		s.unfit = fmt.Errorf(format, t)
	}
}

// field is one of a struct that holds personal texts.
type field struct {
	index  int
	change changer
}

// fields are those that JSON has: exported ones, and what embedded structs have.
func (s *search) fields(t reflect.Type) changer {
	var inner []field
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !f.Anonymous {
			continue
		}
		if c := s.of(f.Type); c != nil {
			inner = append(inner, field{i, c})
			if !f.IsExported() && f.Type.Kind() == reflect.Pointer {
				s.refuse("%s is embedded and cannot be set", f.Type)
			}
		}
	}
	if len(inner) == 0 {
		return nil
	}
	return func(v reflect.Value, f transform) error {
		for _, in := range inner {
			if err := in.change(v.Field(in.index), f); err != nil {
				return err
			}
		}
		return nil
	}
}

// through is a changer of what holds something, if that is personal.
func through(inner changer, outer func(changer, reflect.Value, transform) error) changer {
	if inner == nil {
		return nil
	}
	return func(v reflect.Value, f transform) error { return outer(inner, v, f) }
}

func changeText(v reflect.Value, f transform) error {
	if v.String() == "" {
		return nil
	}
	changed, err := f(Personal(v.String()))
	v.SetString(string(changed))
	return err
}

func changePointer(inner changer, v reflect.Value, f transform) error {
	if v.IsNil() {
		return nil
	}
	copied := reflect.New(v.Type().Elem())
	copied.Elem().Set(v.Elem())
	v.Set(copied)
	return inner(copied.Elem(), f)
}

func changeSlice(inner changer, v reflect.Value, f transform) error {
	if v.IsNil() {
		return nil
	}
	copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(copied, v)
	v.Set(copied)
	return changeArray(inner, copied, f)
}

func changeArray(inner changer, v reflect.Value, f transform) error {
	for i := range v.Len() {
		if err := inner(v.Index(i), f); err != nil {
			return err
		}
	}
	return nil
}

func changeMap(inner changer, v reflect.Value, f transform) error {
	if v.IsNil() {
		return nil
	}
	copied := reflect.MakeMapWithSize(v.Type(), v.Len())
	for entries := v.MapRange(); entries.Next(); {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(entries.Value())
		if err := inner(value, f); err != nil {
			return err
		}
		copied.SetMapIndex(entries.Key(), value)
	}
	v.Set(copied)
	return nil
}

// Personals says how many personal fields events of the type have.
func (t Type) Personals() int { return t.personal.places }

// Unfit says why a type cannot be in the catalog: something in it could hold a personal text that nobody finds. It is
// nil for every type that is in it.
func (t Type) Unfit() error { return t.personal.unfit }

// MapPersonal is e with f applied to every personal field that holds something; e itself is not changed.
func MapPersonal(e Event, f func(Personal) (Personal, error)) (Event, error) {
	return byName[e.EventType()].mapPersonal(e, f)
}

func (t Type) mapPersonal(e Event, f transform) (Event, error) {
	if t.personal.unfit != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, t.personal.unfit)
	}
	if t.personal.change == nil {
		return e, nil
	}
	copied := reflect.New(t.Go).Elem()
	copied.Set(reflect.ValueOf(e))
	if err := t.personal.change(copied, f); err != nil {
		return nil, err
	}
	return copied.Interface().(Event), nil
}
