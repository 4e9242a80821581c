package input

import (
	"reflect"

	"lieudit/schemas/body/shape"
)

// list reads the list that is next. Items past the most it may hold are read over.
func (d *decoder) list(s *shape.Shape, into reflect.Value) error {
	count, taken := 0, map[string]bool{}
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	err := d.each(']', func() error {
		count++
		if s.Max != nil && count > int(*s.Max) {
			return d.pass()
		}
		into.Grow(1)
		into.SetLen(count)
		d.peek()
		start, item := d.at, into.Index(count-1)
		err := d.within(count-1, s.Item, item)
		if err == nil && s.Unique != "" {
			d.distinct(s, taken, place{count - 1, item, d.text[start:d.at]})
		}
		return err
	})
	d.fail(length(s, count))
	return err
}

// place is an item of a list that was read.
type place struct {
	index int
	value reflect.Value
	text  []byte
}

// distinct notes an item that is the same as one before it, by what is taken of those.
func (d *decoder) distinct(s *shape.Shape, taken map[string]bool, p place) {
	loc, key := []any{p.index}, p.value
	if f, ok := s.Item.Field(s.Unique); ok {
		loc, key = append(loc, f.Name), p.value.FieldByIndex(f.Index)
	}
	text := key.String()
	if text == "" { // it is wrong by itself
		return
	}
	if !taken[text] {
		taken[text] = true
		return
	}
	before := len(d.faults)
	d.loc = append(d.loc, loc...)
	d.fail(repeated)
	d.loc = d.loc[:len(d.loc)-len(loc)]
	if len(loc) > 1 { // it is about the item, else about the object around the list
		d.tell(d.faults[before:], given{{s.Unique, quoted(text)}}, p.text)
	}
}
