package kit

import (
	"reflect"

	"lieudit/schemas/body/shape"
)

// decodeList reads the list that is next. Items past the most it may hold are read over.
func (d *bodyDecoder) decodeList(s *shape.Shape, into reflect.Value) error {
	count, seen := 0, map[string]bool{}
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	err := d.scanElements(']', func() error {
		count++
		if s.Max != nil && count > int(*s.Max) {
			return d.skipValue()
		}
		into.Grow(1)
		into.SetLen(count)
		d.peekByte()
		start, item := d.pos, into.Index(count-1)
		err := d.decodeAt(count-1, s.Item, item)
		if err == nil && s.Unique != "" {
			d.checkUnique(s, seen, listItem{count - 1, item, d.text[start:d.pos]})
		}
		return err
	})
	d.addViolation(checkLength(s, count))
	return err
}

// listItem is an item of a list that was read.
type listItem struct {
	index int
	value reflect.Value
	text  []byte
}

// checkUnique notes an item that is the same as one before it, by what is taken of those.
func (d *bodyDecoder) checkUnique(s *shape.Shape, seen map[string]bool, item listItem) {
	loc, key := []any{item.index}, item.value
	if f, ok := s.Item.Field(s.Unique); ok {
		loc, key = append(loc, f.Name), item.value.FieldByIndex(f.Index)
	}
	text := key.String()
	if text == "" { // it is wrong by itself
		return
	}
	if !seen[text] {
		seen[text] = true
		return
	}
	violationsBefore := len(d.violations)
	d.loc = append(d.loc, loc...)
	d.addViolation(valueRepeated)
	d.loc = d.loc[:len(d.loc)-len(loc)]
	if len(loc) > 1 { // it is about the item, else about the object around the list
		d.attachInput(d.violations[violationsBefore:], rawMembers{{s.Unique, quoteJSON(text)}}, item.text)
	}
}
