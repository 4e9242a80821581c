package terminal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

// envVariable is the cli.ValueSource of a flag that has an environment variable. An empty variable counts as not set, because
// a compose file sets the variables that it leaves open to the empty text.
type envVariable struct {
	name   string
	lookup func(string) (string, bool)
}

// EnvSource is the source of a flag's value if the command line omits the flag. It reads the variable through LookupEnv, not
// from the process.
func (t Terminal) EnvSource(name string) cli.ValueSourceChain {
	return cli.NewValueSourceChain(envVariable{name, t.LookupEnv})
}

// Lookup and the methods after it implement cli.ValueSource and cli.EnvValueSource.
func (v envVariable) Lookup() (string, bool) {
	value, ok := v.lookup(v.name)
	return value, ok && value != ""
}

func (v envVariable) IsFromEnv() bool  { return true }
func (v envVariable) Key() string      { return v.name }
func (v envVariable) String() string   { return fmt.Sprintf("environment variable %q", v.name) }
func (v envVariable) GoString() string { return "variable(" + v.name + ")" }

// StringFlag is a flag --some-name with a default value. The variable LIEUDIT_SOME_NAME sets it too; the command line
// overrides the variable.
func (t Terminal) StringFlag(name, value, usage string) *cli.StringFlag {
	key := "LIEUDIT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return &cli.StringFlag{Name: name, Value: value, Usage: usage, Sources: t.EnvSource(key)}
}

// OneOf returns a validator that accepts the given values in upper or lower case. It does not change the value: the command
// still receives it as typed.
func OneOf(values ...string) func(string) error {
	return func(v string) error {
		if slices.ContainsFunc(values, func(allowed string) bool { return strings.EqualFold(allowed, v) }) {
			return nil
		}
		return fmt.Errorf("it is one of %s", strings.Join(values, ", "))
	}
}

// AtLeastOne is a validator of a number flag. It refuses 0 and negative numbers.
func AtLeastOne(n int) error {
	if n < 1 {
		return errors.New("it is at least 1")
	}
	return nil
}

// NotNegative validates a flag that is a duration.
func NotNegative(d time.Duration) error {
	if d < 0 {
		return errors.New("it is not negative")
	}
	return nil
}

// Each returns the validator of a flag that may be repeated. It applies validate to each value and returns the first
// error.
func Each[T any](validate func(T) error) func([]T) error {
	return func(all []T) error {
		for _, v := range all {
			if err := validate(v); err != nil {
				return err
			}
		}
		return nil
	}
}

// checkArguments compares the arguments with the placeholders in the help, such as ID, [REASON] and ORIGIN...: a placeholder
// in brackets is optional, and one that ends in three dots allows more arguments. Commands rely on it: without an error every
// required argument is present and not empty.
func checkArguments(c *cli.Command, placeholders []string) error {
	given := c.Args().Slice()
	for i, placeholder := range placeholders {
		optional := strings.HasPrefix(placeholder, "[")
		if !optional && (i >= len(given) || given[i] == "") {
			return NewUsageError(c, "%s is missing: %s %s", strings.TrimSuffix(placeholder, "..."), c.FullName(), strings.Join(placeholders, " "))
		}
	}
	isVariadic := len(placeholders) > 0 && strings.HasSuffix(placeholders[len(placeholders)-1], "...")
	if len(given) > len(placeholders) && !isVariadic {
		return NewUsageError(c, "unexpected argument %q", given[len(placeholders)])
	}
	return nil
}

// rewordUsageError rewrites the usage errors of urfave/cli in the words of this module's own errors. The library gives its
// errors no types, so they are recognized by their texts. An unknown text is returned unchanged.
func rewordUsageError(c *cli.Command, err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		text = "unknown flag --" + name
		if similar := cli.SuggestFlag(c.VisibleFlags(), name, false); similar != "" {
			text += fmt.Sprintf(". Did you mean %s?", similar)
		}
		return text
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return name + " needs a value"
	}
	if name, ok := strings.CutPrefix(text, "Required flag "); ok {
		return "--" + strings.Trim(strings.TrimSuffix(name, " not set"), `"`) + " is missing"
	}
	if value, flag, why, ok := parseInvalidValue(text); ok {
		return fmt.Sprintf("--%s %s: %s", flag, value, why)
	}
	return text
}

// parseInvalidValue splits a text of the form: invalid value "many" for flag -quota: reason. The value keeps its quotes. A
// reason from package strconv is replaced, because it names a Go function.
func parseInvalidValue(text string) (value, flag, why string, ok bool) {
	text, ok = strings.CutPrefix(text, "invalid value ")
	value, rest, hasFlag := strings.Cut(text, " for flag -")
	flag, why, hasReason := strings.Cut(rest, ": ")
	if strings.HasPrefix(why, "strconv.") {
		why = "it is no number"
	}
	return value, flag, why, ok && hasFlag && hasReason
}
