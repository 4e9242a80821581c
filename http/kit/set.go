package kit

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

// maxExactInteger is up to where a float holds every integer.
const maxExactInteger = 1 << 53

// setText puts a text where it belongs, or says what is wrong with it.
func setText(s *shape.Shape, text string, into reflect.Value) violation {
	switch s.Kind {
	case shape.Date:
		if err := into.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			return invalidDate
		}
		return noViolation
	case shape.Instant:
		t, err := time.Parse(time.RFC3339, text)
		if err != nil || t.IsZero() { // the zero instant stands for none
			return invalidDateTime
		}
		into.Set(reflect.ValueOf(t))
		return noViolation
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nulCharacter
	}
	if f := checkLength(s, utf8.RuneCountInString(text)); f != noViolation {
		return f
	}
	into.SetString(text)
	return checkEnumAndPattern(s, text)
}

// setDefault gives a field that was not sent its default, if it has one.
func setDefault(f *shape.Field, into reflect.Value) {
	if f.Default == "" {
		return
	}
	if f.Pointer {
		into = allocatePointee(into)
	}
	parseParam(f.Shape, f.Default, into)
}

// setNumber puts the text of a JSON number where it belongs.
func setNumber(s *shape.Shape, text string, into reflect.Value) violation {
	n, err := strconv.ParseFloat(text, 64)
	if s.Kind == shape.Number {
		if f := checkBounds(s, n); f != noViolation || err != nil {
			return f
		}
		into.SetFloat(n)
		return noViolation
	}
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if n != math.Trunc(n) {
			return fractionalInteger
		}
		if math.Abs(n) > maxExactInteger {
			return integerTooLarge
		}
		i = int64(n)
	}
	if f := checkBounds(s, float64(i)); f != noViolation {
		return f
	}
	into.SetInt(i)
	return noViolation
}
