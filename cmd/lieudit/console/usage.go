package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// failure marks what went wrong in a command's work, as opposed to how it was called.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// usageError is a call that cannot be meant.
type usageError struct{ text, command string }

func (u *usageError) Error() string {
	return fmt.Sprintf("%s\nhelp: %s --help", u.text, u.command)
}

func wrong(c *cli.Command, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), c.FullName()}
}

// finish gives every command of a tree what they have in common: how usage errors are told, the count of
// words its ArgsUsage asks for, and the mark that tells a failure from wrong usage.
func (p Program) finish(c *cli.Command) {
	c.Suggest = true
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		return wrong(c, "%s", plain(c, err))
	}
	if len(c.Commands) == 0 {
		work, words := c.Action, strings.Fields(c.ArgsUsage)
		c.HideHelpCommand = true // or no argument could be named help
		c.Action = func(ctx context.Context, c *cli.Command) error {
			if err := checkWords(c, words); err != nil {
				return err
			}
			return marked(work(ctx, c))
		}
	}
	for _, sub := range c.Commands {
		p.finish(sub)
	}
}

func marked(err error) error {
	var u *usageError
	if err == nil || errors.As(err, &u) {
		return err
	}
	return &failure{err}
}

// checkWords compares the arguments with what the help calls them: "ID [REASON]", "KEY ORIGIN...".
func checkWords(c *cli.Command, words []string) error {
	given := c.Args().Slice()
	for i, w := range words {
		optional := strings.HasPrefix(w, "[")
		if !optional && (i >= len(given) || given[i] == "") {
			return wrong(c, "%s is missing: %s %s", strings.TrimSuffix(w, "..."), c.FullName(), strings.Join(words, " "))
		}
	}
	endless := len(words) > 0 && strings.HasSuffix(words[len(words)-1], "...")
	if len(given) > len(words) && !endless {
		return wrong(c, "unexpected argument %q", given[len(words)])
	}
	return nil
}

// group is a command that only holds others.
func group(name, usage string, commands ...*cli.Command) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, Commands: commands,
		Action: groupAction, HideHelpCommand: true,
	}
}

// groupAction runs when none of a group's commands was named.
func groupAction(_ context.Context, c *cli.Command) error {
	name := c.Args().First()
	switch {
	case name == "" && c == c.Root():
		return cli.ShowRootCommandHelp(c)
	case name == "":
		return wrong(c, "a command is missing: %s", strings.Join(names(c), ", "))
	}
	text := fmt.Sprintf("unknown command %q", name)
	if near := cli.SuggestCommand(c.VisibleCommands(), name); near != "" {
		text += fmt.Sprintf(". Did you mean %s?", near)
	}
	return wrong(c, "%s", text)
}

func names(c *cli.Command) []string {
	var out []string
	for _, sub := range c.VisibleCommands() {
		out = append(out, sub.Name)
	}
	return out
}

// plain says the library's usage errors in this program's words.
func plain(c *cli.Command, err error) string {
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
	if value, flag, why, ok := refusedValue(text); ok {
		return fmt.Sprintf("--%s %s: %s", flag, value, why)
	}
	return text
}

// refusedValue takes apart: invalid value "many" for flag -quota: reason.
func refusedValue(text string) (value, flag, why string, ok bool) {
	text, ok = strings.CutPrefix(text, "invalid value ")
	value, rest, named := strings.Cut(text, " for flag -")
	flag, why, told := strings.Cut(rest, ": ")
	if strings.HasPrefix(why, "strconv.") {
		why = "it is no number"
	}
	return value, flag, why, ok && named && told
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
		if slices.ContainsFunc(values, func(have string) bool { return strings.EqualFold(have, v) }) {
			return nil
		}
		return fmt.Errorf("it is one of %s", strings.Join(values, ", "))
	}
}
