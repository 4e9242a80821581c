// Package terminal holds what the command lines of this module's programs share: running a command and choosing the exit
// code, checking flags and arguments, and printing. A program uses the streams, the environment and the time zone of its
// process only through a Terminal, so that a test runs every command as a shell does.
//
// A program builds its commands with NewGroup and the validators of flags.go and hands the root to Terminal.RunCommand, which
// gives each command the common checks, runs the one that was called, prints the error and returns the exit code. The command
// prints with PrintTable, PrintFields, PrintLine and PrintJSON.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/schemas/token"
)

// The exit codes of every program. Scripts depend on them.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Terminal is the environment of one run of a program: its streams, environment variables and time zone. All fields except
// Columns are required.
type Terminal struct {
	Name       string // of the program; every printed error begins with it
	In         io.Reader
	Out, Err   io.Writer
	IsTerminal bool // whether people read Out; false if it is a pipe or a file
	Columns    int  // width of the terminal that shows Out; 0: unknown
	LookupEnv  func(string) (string, bool)
	TimeZone   *time.Location // in which times are read and shown
}

// RunCommand runs one command line on a tree of commands and returns the exit code: 0 done, 1 failed, 2 wrong usage. The
// first of args is the program's name. Actions receive ctx and must return soon after it ends. An error is printed on Err;
// explain turns the error of an action into text for people, and is not called for wrong usage. RunCommand changes the tree,
// so each call needs its own.
func (t Terminal) RunCommand(ctx context.Context, root *cli.Command, args []string, explain func(error) string) int {
	root.Reader, root.Writer, root.ErrWriter = t.In, t.Out, t.Err
	root.Action = runGroup
	root.ExitErrHandler = func(context.Context, *cli.Command, error) {} // the exit code is decided here
	prepareCommand(root)
	err := root.Run(ctx, args)
	var failed *commandError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		t.PrintError("interrupted")
		return exitFailed
	case errors.As(err, &failed):
		t.PrintError(explain(failed.err))
		return exitFailed
	default: // not from an action: a usageError, or one that the library returned before an action ran
		t.PrintError(err.Error())
		return exitUsage
	}
}

// PrintError prints an error on Err after the program's name and indents its further lines. It prints only the hint of a
// token in the text, because errors end up in logs. Each line is sanitized: an error may quote a foreign file.
func (t Terminal) PrintError(text string) {
	lines := strings.Split(token.DefaultPrefixes.Redact(text), "\n")
	for i, line := range lines {
		lines[i] = SanitizeText(line)
	}
	fmt.Fprintln(t.Err, t.Name+": "+strings.Join(lines, "\n"+strings.Repeat(" ", len(t.Name)+2)))
}

// commandError marks an error that an action returned, so that RunCommand returns 1 for it and not 2.
type commandError struct{ err error }

func (e *commandError) Error() string { return e.err.Error() }

func (e *commandError) Unwrap() error { return e.err }

// usageError describes what is wrong with the command line. Its text ends with how to get the command's help.
type usageError struct{ text, command string }

func (e *usageError) Error() string {
	return fmt.Sprintf("%s\nhelp: %s --help", e.text, e.command)
}

// NewUsageError returns the error of an action that was called wrongly. RunCommand returns 2 for it, even if it is wrapped.
func NewUsageError(c *cli.Command, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), c.FullName()}
}

// prepareCommand adds the common parts to every command of a tree: the wording of usage errors, the check of the arguments
// against ArgsUsage, and markFailure around the action.
func prepareCommand(c *cli.Command) {
	c.Suggest = true
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		return NewUsageError(c, "%s", rewordUsageError(c, err))
	}
	if len(c.Commands) == 0 {
		action, placeholders := c.Action, strings.Fields(c.ArgsUsage)
		c.HideHelpCommand = true // otherwise the library takes an argument "help" for its help command
		c.Action = func(ctx context.Context, c *cli.Command) error {
			if err := checkArguments(c, placeholders); err != nil {
				return err
			}
			return markFailure(action(ctx, c))
		}
	}
	for _, sub := range c.Commands {
		prepareCommand(sub)
	}
}

// markFailure wraps the error of an action in a commandError, unless the action found the command line wrong.
func markFailure(err error) error {
	var usage *usageError
	if err == nil || errors.As(err, &usage) {
		return err
	}
	return &commandError{err}
}

// NewGroup returns a command that only holds others. Calling it without one of them is wrong usage.
func NewGroup(name, usage string, commands ...*cli.Command) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, Commands: commands,
		Action: runGroup, HideHelpCommand: true,
	}
}

// runGroup is the action of a group: it runs if the first argument is not one of the group's commands. The root without an
// argument prints its help; anything else is wrong usage.
func runGroup(_ context.Context, c *cli.Command) error {
	name := c.Args().First()
	switch {
	case name == "" && c == c.Root():
		return cli.ShowRootCommandHelp(c)
	case name == "":
		return NewUsageError(c, "a command is missing: %s", strings.Join(commandNames(c), ", "))
	}
	text := fmt.Sprintf("unknown command %q", name)
	if similar := cli.SuggestCommand(c.VisibleCommands(), name); similar != "" {
		text += fmt.Sprintf(". Did you mean %s?", similar)
	}
	return NewUsageError(c, "%s", text)
}

// commandNames are the names of a group's commands that the help shows.
func commandNames(c *cli.Command) []string {
	var names []string
	for _, sub := range c.VisibleCommands() {
		names = append(names, sub.Name)
	}
	return names
}
