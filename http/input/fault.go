package input

import (
	"fmt"
	"math"
	"strings"

	"lieudit/schemas/body/shape"
)

// fault is a broken rule: Pydantic's name for it, and its words. The zero fault is none.
type fault struct{ kind, msg string }

var none fault

var (
	missing    = fault{"missing", "Field required"}
	repeated   = fault{"value_error", "Value error, another item has the same value"}
	badObject  = fault{"dict_type", "Input should be a valid dictionary"}
	extra      = fault{"extra_forbidden", "Extra inputs are not permitted"}
	nul        = fault{"value_error", "Value error, NUL characters are not permitted"}
	badText    = fault{"string_type", "Input should be a valid string"}
	badDate    = fault{"date_parsing", "Input should be a valid date in the format YYYY-MM-DD"}
	badTime    = fault{"datetime_parsing", "Input should be a valid datetime in the format of RFC 3339"}
	fraction   = fault{"int_from_float", "Input should be a valid integer, got a number with a fractional part"}
	tooBig     = fault{"int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size"}
	notFinite  = fault{"finite_number", "Input should be a finite number"}
	notInteger = fault{"int_parsing", "Input should be a valid integer, unable to parse string as an integer"}
	notNumber  = fault{"float_parsing", "Input should be a valid number, unable to parse string as a number"}
	notBoolean = fault{"bool_parsing", "Input should be a valid boolean, unable to interpret input"}
)

// wrongType is the fault of a value that is not what its shape is.
func wrongType(k shape.Kind) fault {
	switch k {
	case shape.Object:
		return fault{"model_attributes_type", "Input should be a valid dictionary or object to extract fields from"}
	case shape.List:
		return fault{"list_type", "Input should be a valid list"}
	case shape.Date:
		return fault{"date_type", "Input should be a valid date"}
	case shape.Instant:
		return fault{"datetime_type", "Input should be a valid datetime"}
	case shape.Integer:
		return fault{"int_type", "Input should be a valid integer"}
	case shape.Number:
		return fault{"float_type", "Input should be a valid number"}
	case shape.Boolean:
		return fault{"bool_type", "Input should be a valid boolean"}
	default:
		return badText
	}
}

func broken(rule string) fault { return fault{"value_error", "Value error, " + rule} }

// bounds is the fault of a number out of its bounds.
func bounds(s *shape.Shape, n float64) fault {
	switch {
	case math.IsInf(n, 0):
		return notFinite
	case s.Min != nil && n < *s.Min:
		return fault{"greater_than_equal", fmt.Sprintf("Input should be greater than or equal to %v", plain(*s.Min))}
	case s.Max != nil && n > *s.Max:
		return fault{"less_than_equal", fmt.Sprintf("Input should be less than or equal to %v", plain(*s.Max))}
	}
	return none
}

// length is the fault of a text or list that has n characters or items.
func length(s *shape.Shape, n int) fault {
	text := s.Kind == shape.Text
	switch {
	case s.Min != nil && n < int(*s.Min) && text:
		return fault{"string_too_short", "String should have at least " + many(*s.Min, "character")}
	case s.Max != nil && n > int(*s.Max) && text:
		return fault{"string_too_long", "String should have at most " + many(*s.Max, "character")}
	case s.Min != nil && n < int(*s.Min):
		return fault{"too_short", fmt.Sprintf("List should have at least %s after validation, not %d", many(*s.Min, "item"), n)}
	case s.Max != nil && n > int(*s.Max):
		return fault{"too_long", fmt.Sprintf("List should have at most %s after validation, not %d", many(*s.Max, "item"), n)}
	}
	return none
}

// bulk is the fault of free JSON: its text, and how many members it has if it is an object, else -1.
func bulk(s *shape.Shape, text []byte, members int) fault {
	switch {
	case s.Members > 0 && members < 0:
		return badObject
	case s.Members > 0 && members > s.Members:
		return fault{"too_long", fmt.Sprintf("Dictionary should have at most %s after validation, not %d", many(float64(s.Members), "item"), members)}
	case s.Bytes > 0 && len(text) > s.Bytes:
		return broken(fmt.Sprintf("at most %d bytes of JSON are kept", s.Bytes))
	}
	return none
}

func many(n float64, unit string) string {
	if n != 1 {
		unit += "s"
	}
	return plain(n) + " " + unit
}

func plain(n float64) string {
	if n == math.Trunc(n) {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprint(n)
}

// words is the fault of a text that is none of those allowed, or not of the form asked for.
func words(s *shape.Shape, text string) fault {
	if s.Pattern != nil && !s.Pattern.MatchString(text) {
		return fault{"string_pattern_mismatch", fmt.Sprintf("String should match pattern '%s'", s.Pattern)}
	}
	if len(s.Enum) == 0 {
		return none
	}
	for _, w := range s.Enum {
		if w == text {
			return none
		}
	}
	return fault{"literal_error", "Input should be " + choices(s.Enum)}
}

// choices is 'a', 'b' or 'c'.
func choices(all []string) string {
	quoted := make([]string, len(all))
	for i, w := range all {
		quoted[i] = "'" + w + "'"
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
