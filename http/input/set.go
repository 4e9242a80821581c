package input

import (
	"encoding"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"lieudit/schemas/body/shape"
)

// exact is up to where a float holds every integer.
const exact = 1 << 53

// setText puts a text where it belongs, or says what is wrong with it.
func setText(s *shape.Shape, text string, into reflect.Value) fault {
	switch s.Kind {
	case shape.Date:
		if err := into.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			return badDate
		}
		return none
	case shape.Instant:
		t, err := time.Parse(time.RFC3339, text)
		if err != nil || t.IsZero() { // the zero instant stands for none
			return badTime
		}
		into.Set(reflect.ValueOf(t))
		return none
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nul
	}
	if f := length(s, utf8.RuneCountInString(text)); f != none {
		return f
	}
	into.SetString(text)
	return words(s, text)
}

// leftOut gives a field that was not sent its default, if it has one.
func leftOut(f *shape.Field, into reflect.Value) {
	if f.Default == "" {
		return
	}
	if f.Pointer {
		into = fresh(into)
	}
	parse(f.Shape, f.Default, into)
}

// setNumber puts the text of a JSON number where it belongs.
func setNumber(s *shape.Shape, text string, into reflect.Value) fault {
	n, err := strconv.ParseFloat(text, 64)
	if s.Kind == shape.Number {
		if f := bounds(s, n); f != none || err != nil {
			return f
		}
		into.SetFloat(n)
		return none
	}
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if n != math.Trunc(n) {
			return fraction
		}
		if math.Abs(n) > exact {
			return tooBig
		}
		i = int64(n)
	}
	if f := bounds(s, float64(i)); f != none {
		return f
	}
	into.SetInt(i)
	return none
}
