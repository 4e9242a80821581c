package kit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lieudit/schemas/body/shape"
)

// violation is a broken rule: its name and its message as Pydantic has them. Both are part of the API. The zero violation,
// noViolation, means that no rule is broken.
type violation struct{ rule, msg string }

var noViolation violation

var (
	fieldMissing      = violation{"missing", "Field required"}
	valueRepeated     = violation{"value_error", "Value error, another item has the same value"}
	notObject         = violation{"dict_type", "Input should be a valid dictionary"}
	fieldNotDeclared  = violation{"extra_forbidden", "Extra inputs are not permitted"}
	nulCharacter      = violation{"value_error", "Value error, NUL characters are not permitted"}
	notString         = violation{"string_type", "Input should be a valid string"}
	invalidDate       = violation{"date_parsing", "Input should be a valid date in the format YYYY-MM-DD"}
	invalidDateTime   = violation{"datetime_parsing", "Input should be a valid datetime in the format of RFC 3339"}
	fractionalInteger = violation{"int_from_float", "Input should be a valid integer, got a number with a fractional part"}
	integerTooLarge   = violation{"int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size"}
	notFinite         = violation{"finite_number", "Input should be a finite number"}
	notInteger        = violation{"int_parsing", "Input should be a valid integer, unable to parse string as an integer"}
	notNumber         = violation{"float_parsing", "Input should be a valid number, unable to parse string as a number"}
	notBoolean        = violation{"bool_parsing", "Input should be a valid boolean, unable to interpret input"}
)

// typeViolation returns the violation of a value whose JSON type is not that of its shape.
func typeViolation(k shape.Kind) violation {
	switch k {
	case shape.Object:
		return violation{"model_attributes_type", "Input should be a valid dictionary or object to extract fields from"}
	case shape.List:
		return violation{"list_type", "Input should be a valid list"}
	case shape.Date:
		return violation{"date_type", "Input should be a valid date"}
	case shape.Instant:
		return violation{"datetime_type", "Input should be a valid datetime"}
	case shape.Integer:
		return violation{"int_type", "Input should be a valid integer"}
	case shape.Number:
		return violation{"float_type", "Input should be a valid number"}
	case shape.Boolean:
		return violation{"bool_type", "Input should be a valid boolean"}
	default:
		return notString
	}
}

// valueViolation returns the violation of a rule of our own, for which Pydantic has no name. rule describes it in a few words.
func valueViolation(rule string) violation { return violation{"value_error", "Value error, " + rule} }

// checkBounds checks a number against Min and Max. Infinity is a number that was too large for a float64.
func checkBounds(s *shape.Shape, n float64) violation {
	switch {
	case math.IsInf(n, 0):
		return notFinite
	case s.Min != nil && n < *s.Min:
		return violation{"greater_than_equal", fmt.Sprintf("Input should be greater than or equal to %v", formatNumber(*s.Min))}
	case s.Max != nil && n > *s.Max:
		return violation{"less_than_equal", fmt.Sprintf("Input should be less than or equal to %v", formatNumber(*s.Max))}
	}
	return noViolation
}

// checkLength checks a text or list of n characters or items against Min and Max. Characters are Unicode code points.
func checkLength(s *shape.Shape, n int) violation {
	text := s.Kind == shape.Text
	switch {
	case s.Min != nil && n < int(*s.Min) && text:
		return violation{"string_too_short", "String should have at least " + formatCount(*s.Min, "character")}
	case s.Max != nil && n > int(*s.Max) && text:
		return violation{"string_too_long", "String should have at most " + formatCount(*s.Max, "character")}
	case s.Min != nil && n < int(*s.Min):
		return violation{"too_short", fmt.Sprintf("List should have at least %s after validation, not %d", formatCount(*s.Min, "item"), n)}
	case s.Max != nil && n > int(*s.Max):
		return violation{"too_long", fmt.Sprintf("List should have at most %s after validation, not %d", formatCount(*s.Max, "item"), n)}
	}
	return noViolation
}

// checkFreeJSON checks free JSON by its text and the number of its members, which is -1 if it is not an object.
func checkFreeJSON(s *shape.Shape, text []byte, members int) violation {
	switch {
	case s.MaxMembers > 0 && members < 0:
		return notObject
	case s.MaxMembers > 0 && members > s.MaxMembers:
		return violation{"too_long", fmt.Sprintf("Dictionary should have at most %s after validation, not %d", formatCount(float64(s.MaxMembers), "item"), members)}
	case s.MaxBytes > 0 && len(text) > s.MaxBytes:
		return valueViolation(fmt.Sprintf("at most %d bytes of JSON are kept", s.MaxBytes))
	}
	return noViolation
}

// formatCount returns a bound with its unit: "1 item", "3 items".
func formatCount(n float64, unit string) string {
	if n != 1 {
		unit += "s"
	}
	return formatNumber(n) + " " + unit
}

// formatNumber formats a bound as Pydantic does: without a decimal point if it is an integer.
func formatNumber(n float64) string {
	if n == math.Trunc(n) {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprint(n)
}

// checkEnumAndPattern checks a text against the pattern, then against the texts that are allowed. It finds at most one violation.
func checkEnumAndPattern(s *shape.Shape, text string) violation {
	if s.Pattern != nil && !s.Pattern.MatchString(text) {
		return violation{"string_pattern_mismatch", fmt.Sprintf("String should match pattern '%s'", s.Pattern)}
	}
	if len(s.Enum) == 0 || slices.Contains(s.Enum, text) {
		return noViolation
	}
	return violation{"literal_error", "Input should be " + joinChoices(s.Enum)}
}

// joinChoices returns the choices as Pydantic lists them: 'a', 'b' or 'c'. There must be at least one.
func joinChoices(all []string) string {
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
