package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// commandError marks what went wrong in a command's work, as opposed to how it was called.
type commandError struct{ err error }

func (f *commandError) Error() string { return f.err.Error() }

func (f *commandError) Unwrap() error { return f.err }

// usageError is a call that cannot be meant.
type usageError struct{ text, command string }

func (u *usageError) Error() string {
	return fmt.Sprintf("%s\nhelp: %s --help", u.text, u.command)
}

func newUsageError(c *cli.Command, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), c.FullName()}
}

// prepareCommands gives every command of a tree what they have in common: how usage errors are told, the count of
// words its ArgsUsage asks for, and the mark that tells a failure from wrong usage.
func (p Program) prepareCommands(c *cli.Command) {
	c.Suggest = true
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		return newUsageError(c, "%s", rewordUsageError(c, err))
	}
	if len(c.Commands) == 0 {
		action, placeholders := c.Action, strings.Fields(c.ArgsUsage)
		c.HideHelpCommand = true // or no argument could be named help
		c.Action = func(ctx context.Context, c *cli.Command) error {
			if err := checkArguments(c, placeholders); err != nil {
				return err
			}
			return markFailure(action(ctx, c))
		}
	}
	for _, sub := range c.Commands {
		p.prepareCommands(sub)
	}
}

func markFailure(err error) error {
	var u *usageError
	if err == nil || errors.As(err, &u) {
		return err
	}
	return &commandError{err}
}

// checkArguments compares the arguments with what the help calls them: "ID [REASON]", "KEY ORIGIN...".
func checkArguments(c *cli.Command, placeholders []string) error {
	given := c.Args().Slice()
	for i, w := range placeholders {
		optional := strings.HasPrefix(w, "[")
		if !optional && (i >= len(given) || given[i] == "") {
			return newUsageError(c, "%s is missing: %s %s", strings.TrimSuffix(w, "..."), c.FullName(), strings.Join(placeholders, " "))
		}
	}
	isVariadic := len(placeholders) > 0 && strings.HasSuffix(placeholders[len(placeholders)-1], "...")
	if len(given) > len(placeholders) && !isVariadic {
		return newUsageError(c, "unexpected argument %q", given[len(placeholders)])
	}
	return nil
}

// newGroup is a command that only holds others.
func newGroup(name, usage string, commands ...*cli.Command) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, Commands: commands,
		Action: runGroup, HideHelpCommand: true,
	}
}

// runGroup runs when none of a group's commands was named.
func runGroup(_ context.Context, c *cli.Command) error {
	name := c.Args().First()
	switch {
	case name == "" && c == c.Root():
		return cli.ShowRootCommandHelp(c)
	case name == "":
		return newUsageError(c, "a command is missing: %s", strings.Join(commandNames(c), ", "))
	}
	text := fmt.Sprintf("unknown command %q", name)
	if near := cli.SuggestCommand(c.VisibleCommands(), name); near != "" {
		text += fmt.Sprintf(". Did you mean %s?", near)
	}
	return newUsageError(c, "%s", text)
}

func commandNames(c *cli.Command) []string {
	var out []string
	for _, sub := range c.VisibleCommands() {
		out = append(out, sub.Name)
	}
	return out
}

// rewordUsageError says the library's usage errors in this program's words.
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

// parseInvalidValue takes apart: invalid value "many" for flag -quota: reason.
func parseInvalidValue(text string) (value, flag, why string, ok bool) {
	text, ok = strings.CutPrefix(text, "invalid value ")
	value, rest, hasFlag := strings.Cut(text, " for flag -")
	flag, why, hasReason := strings.Cut(rest, ": ")
	if strings.HasPrefix(why, "strconv.") {
		why = "it is no number"
	}
	return value, flag, why, ok && hasFlag && hasReason
}

// quotaFlag takes no 0, which the API would read as left out.
func quotaFlag() cli.Flag {
	return &cli.Int64Flag{
		Name: "quota", Usage: "`REQUESTS` a month; the plan's own number when left out", HideDefault: true,
		Validator: func(n int64) error {
			if n < 1 {
				return errors.New("it is at least 1")
			}
			return nil
		},
	}
}

// oneOf refuses other values of a flag, in any case of letters.
func oneOf(values ...string) func(string) error {
	return func(v string) error {
		if slices.ContainsFunc(values, func(allowed string) bool { return strings.EqualFold(allowed, v) }) {
			return nil
		}
		return fmt.Errorf("it is one of %s", strings.Join(values, ", "))
	}
}
