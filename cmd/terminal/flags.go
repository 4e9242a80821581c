package terminal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// envVariable is an environment variable that a flag mirrors. An empty one counts as not set, because compose files leave
// empty ones.
type envVariable struct {
	name string
	env  func(string) (string, bool)
}

// EnvSource is an environment variable as the source of a flag that the command line leaves out.
func (t Terminal) EnvSource(name string) cli.ValueSourceChain {
	return cli.NewValueSourceChain(envVariable{name, t.LookupEnv})
}

func (v envVariable) Lookup() (string, bool) {
	value, ok := v.env(v.name)
	return value, ok && value != ""
}

func (v envVariable) IsFromEnv() bool  { return true }
func (v envVariable) Key() string      { return v.name }
func (v envVariable) String() string   { return fmt.Sprintf("environment variable %q", v.name) }
func (v envVariable) GoString() string { return "variable(" + v.name + ")" }

// StringFlag is a flag --some-name that LIEUDIT_SOME_NAME mirrors.
func (t Terminal) StringFlag(name, value, usage string) *cli.StringFlag {
	key := "LIEUDIT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return &cli.StringFlag{Name: name, Value: value, Usage: usage, Sources: t.EnvSource(key)}
}

// OneOf is a validator that refuses other values of a flag, in any case of letters.
func OneOf(values ...string) func(string) error {
	return func(v string) error {
		if slices.ContainsFunc(values, func(allowed string) bool { return strings.EqualFold(allowed, v) }) {
			return nil
		}
		return fmt.Errorf("it is one of %s", strings.Join(values, ", "))
	}
}

// AtLeastOne is a validator that refuses 0 and negative numbers.
func AtLeastOne(n int) error {
	if n < 1 {
		return errors.New("it is at least 1")
	}
	return nil
}

// Each is the validator of a flag that may be repeated: each value passes validate.
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

// checkArguments compares the arguments with what the help calls them: "ID [REASON]", "KEY ORIGIN...".
func checkArguments(c *cli.Command, placeholders []string) error {
	given := c.Args().Slice()
	for i, w := range placeholders {
		optional := strings.HasPrefix(w, "[")
		if !optional && (i >= len(given) || given[i] == "") {
			return NewUsageError(c, "%s is missing: %s %s", strings.TrimSuffix(w, "..."), c.FullName(), strings.Join(placeholders, " "))
		}
	}
	isVariadic := len(placeholders) > 0 && strings.HasSuffix(placeholders[len(placeholders)-1], "...")
	if len(given) > len(placeholders) && !isVariadic {
		return NewUsageError(c, "unexpected argument %q", given[len(placeholders)])
	}
	return nil
}

// rewordUsageError words the usage errors of the library as this module's programs word theirs. The library gives them
// no types, so they are told by their texts.
func rewordUsageError(c *cli.Command, err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		text = "unknown flag --" + name
		if near := cli.SuggestFlag(c.VisibleFlags(), name, false); near != "" {
			text += fmt.Sprintf(". Did you mean %s?", near)
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

// parseInvalidValue splits a text of the form: invalid value "many" for flag -quota: reason.
func parseInvalidValue(text string) (value, flag, why string, ok bool) {
	text, ok = strings.CutPrefix(text, "invalid value ")
	value, rest, hasFlag := strings.Cut(text, " for flag -")
	flag, why, hasReason := strings.Cut(rest, ": ")
	if strings.HasPrefix(why, "strconv.") {
		why = "it is no number"
	}
	return value, flag, why, ok && hasFlag && hasReason
}
