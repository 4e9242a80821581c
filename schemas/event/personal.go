package event

import "reflect"

// Personals says how many personal fields events of the type have.
func (t Type) Personals() int { return len(t.personal) }

// personalFields finds the personal fields of a struct, also inside the structs it holds.
func personalFields(t reflect.Type) [][]int {
	var found [][]int
	for _, f := range reflect.VisibleFields(t) {
		switch {
		case f.Type == reflect.TypeFor[Personal]():
			found = append(found, f.Index)
		case f.Type.Kind() == reflect.Struct && !f.Anonymous:
			for _, inner := range personalFields(f.Type) {
				found = append(found, append(append([]int{}, f.Index...), inner...))
			}
		}
	}
	return found
}

// MapPersonal is e with f applied to every personal field that holds something; e itself is not changed.
func MapPersonal(e Event, f func(Personal) (Personal, error)) (Event, error) {
	t := byName[e.EventType()]
	if len(t.personal) == 0 {
		return e, nil
	}
	copied := reflect.New(t.Go).Elem()
	copied.Set(reflect.ValueOf(e))
	for _, index := range t.personal {
		field := copied.FieldByIndex(index)
		if field.String() == "" {
			continue
		}
		mapped, err := f(Personal(field.String()))
		if err != nil {
			return nil, err
		}
		field.SetString(string(mapped))
	}
	return copied.Interface().(Event), nil
}
