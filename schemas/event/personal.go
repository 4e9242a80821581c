package event

import (
	"fmt"
	"reflect"
)

// personalFields is where the personalFields texts of a type are, and how to change them.
type personalFields struct {
	count  int
	mapAll valueMapper
	err    error // why they cannot all be found, nil when they can
}

// personalMapper is what happens to one personal text.
type personalMapper = func(Personal) (Personal, error)

// valueMapper changes every personal text in a value that can be set. What the value shares with others is copied first.
type valueMapper func(reflect.Value, personalMapper) error

// findPersonalFields looks for personal texts in a struct and in all it holds. Where one could hide from it, the type is unfit.
func findPersonalFields(t reflect.Type) personalFields {
	s := fieldSearch{enclosing: map[reflect.Type]bool{}}
	change := s.mapperOf(t)
	return personalFields{s.count, change, s.err}
}

// fieldSearch is one walk through a type.
type fieldSearch struct {
	enclosing map[reflect.Type]bool // the types around the one that is looked at
	count     int
	err       error
}

// mapperOf is nil when the type holds nothing personal.
func (s *fieldSearch) mapperOf(t reflect.Type) valueMapper {
	if t == reflect.TypeFor[Personal]() {
		s.count++
		return mapText
	}
	if s.enclosing[t] {
		s.reject("%s holds itself", t)
		return nil
	}
	s.enclosing[t] = true
	defer delete(s.enclosing, t)
	switch t.Kind() {
	case reflect.Struct:
		return s.mapperOfFields(t)
	case reflect.Pointer:
		return wrapMapper(s.mapperOf(t.Elem()), mapPointer)
	case reflect.Slice:
		return wrapMapper(s.mapperOf(t.Elem()), mapSlice)
	case reflect.Array:
		return wrapMapper(s.mapperOf(t.Elem()), mapArray)
	case reflect.Map:
		if s.mapperOf(t.Key()) != nil {
			s.reject("the keys of %s are personal", t)
		}
		return wrapMapper(s.mapperOf(t.Elem()), mapMap)
	case reflect.Interface:
		s.reject("%s may hold anything", t)
	}
	return nil
}

func (s *fieldSearch) reject(format string, t reflect.Type) {
	if s.err == nil {
		s.err = fmt.Errorf(format, t)
	}
}

// fieldMapper is one of a struct that holds personal texts.
type fieldMapper struct {
	index int
	apply valueMapper
}

// mapperOfFields are those that JSON has: exported ones, and what embedded structs have.
func (s *fieldSearch) mapperOfFields(t reflect.Type) valueMapper {
	var inner []fieldMapper
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !f.Anonymous {
			continue
		}
		if c := s.mapperOf(f.Type); c != nil {
			inner = append(inner, fieldMapper{i, c})
			if !f.IsExported() && f.Type.Kind() == reflect.Pointer {
				s.reject("%s is embedded and cannot be set", f.Type)
			}
		}
	}
	if len(inner) == 0 {
		return nil
	}
	return func(v reflect.Value, f personalMapper) error {
		for _, in := range inner {
			if err := in.apply(v.Field(in.index), f); err != nil {
				return err
			}
		}
		return nil
	}
}

// wrapMapper is a changer of what holds something, if that is personal.
func wrapMapper(inner valueMapper, outer func(valueMapper, reflect.Value, personalMapper) error) valueMapper {
	if inner == nil {
		return nil
	}
	return func(v reflect.Value, f personalMapper) error { return outer(inner, v, f) }
}

func mapText(v reflect.Value, f personalMapper) error {
	if v.String() == "" {
		return nil
	}
	changed, err := f(Personal(v.String()))
	v.SetString(string(changed))
	return err
}

func mapPointer(inner valueMapper, v reflect.Value, f personalMapper) error {
	if v.IsNil() {
		return nil
	}
	copied := reflect.New(v.Type().Elem())
	copied.Elem().Set(v.Elem())
	v.Set(copied)
	return inner(copied.Elem(), f)
}

func mapSlice(inner valueMapper, v reflect.Value, f personalMapper) error {
	if v.IsNil() {
		return nil
	}
	copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(copied, v)
	v.Set(copied)
	return mapArray(inner, copied, f)
}

func mapArray(inner valueMapper, v reflect.Value, f personalMapper) error {
	for i := range v.Len() {
		if err := inner(v.Index(i), f); err != nil {
			return err
		}
	}
	return nil
}

func mapMap(inner valueMapper, v reflect.Value, f personalMapper) error {
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

// PersonalFieldCount says how many personal fields events of the type have.
func (t Type) PersonalFieldCount() int { return t.personalFields.count }

// Validate says why a type cannot be in the catalog: something in it could hold a personal text that nobody finds. It is
// nil for every type that is in it.
func (t Type) Validate() error { return t.personalFields.err }

// MapPersonal is e with f applied to every personal field that holds something; e itself is not changed.
func MapPersonal(e Event, f func(Personal) (Personal, error)) (Event, error) {
	return byName[e.EventType()].mapPersonal(e, f)
}

func (t Type) mapPersonal(e Event, f personalMapper) (Event, error) {
	if t.personalFields.err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, t.personalFields.err)
	}
	if t.personalFields.mapAll == nil {
		return e, nil
	}
	copied := reflect.New(t.GoType).Elem()
	copied.Set(reflect.ValueOf(e))
	if err := t.personalFields.mapAll(copied, f); err != nil {
		return nil, err
	}
	return copied.Interface().(Event), nil
}
