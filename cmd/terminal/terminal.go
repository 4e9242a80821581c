// Package terminal is what the command lines of this module's programs share: how a command is run and ends, how its
// flags and arguments are checked, and how it prints. Its constraint: a program reaches the process only through a
// Terminal, so that every command runs in a test as it runs in a shell.
//
// A program builds its commands with NewGroup and the validators of flags.go and hands the root to Terminal.RunCommand,
// which gives each command the checks that all have in common, runs the one that was called, prints the error and returns
// the exit code. The command prints with PrintTable, PrintFields, PrintLine and PrintJSON.
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

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Terminal is what a run of a program has around it. All fields are required.
type Terminal struct {
	Name       string // of the program; it stands before each error
	In         io.Reader
	Out, Err   io.Writer
	IsTerminal bool // whether people read Out
	LookupEnv  func(string) (string, bool)
	TimeZone   *time.Location // in which times are read and shown
}

// RunCommand runs one command line on a tree of commands, the program's name first, and returns the exit code: 0 done, 1
// failed, 2 wrong usage. It returns soon after ctx ends. explain words the error of a command's work for people.
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
	default: // it is no error of a command's work
		t.PrintError(err.Error())
		return exitUsage
	}
}

// PrintError prints an error, and only the hint of a token that is in it.
func (t Terminal) PrintError(text string) {
	text = strings.ReplaceAll(token.DefaultPrefixes.Redact(text), "\n", "\n"+strings.Repeat(" ", len(t.Name)+2))
	fmt.Fprintln(t.Err, t.Name+": "+text)
}

// commandError is an error of a command's work, as opposed to one of how it was called.
type commandError struct{ err error }

func (e *commandError) Error() string { return e.err.Error() }

func (e *commandError) Unwrap() error { return e.err }

// usageError is a command line that cannot be meant.
type usageError struct{ text, command string }

func (e *usageError) Error() string {
	return fmt.Sprintf("%s\nhelp: %s --help", e.text, e.command)
}

// NewUsageError says that a command was called wrongly. RunCommand then returns 2.
func NewUsageError(c *cli.Command, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), c.FullName()}
}

// prepareCommand gives every command of a tree what all have in common: the wording of usage errors, the check of the
// number of arguments, and the difference between a failure and wrong usage.
func prepareCommand(c *cli.Command) {
	c.Suggest = true
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		return NewUsageError(c, "%s", rewordUsageError(c, err))
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
		prepareCommand(sub)
	}
}

func markFailure(err error) error {
	var usage *usageError
	if err == nil || errors.As(err, &usage) {
		return err
	}
	return &commandError{err}
}

// NewGroup is a command that only holds others.
func NewGroup(name, usage string, commands ...*cli.Command) *cli.Command {
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
		return NewUsageError(c, "a command is missing: %s", strings.Join(commandNames(c), ", "))
	}
	text := fmt.Sprintf("unknown command %q", name)
	if near := cli.SuggestCommand(c.VisibleCommands(), name); near != "" {
		text += fmt.Sprintf(". Did you mean %s?", near)
	}
	return NewUsageError(c, "%s", text)
}

func commandNames(c *cli.Command) []string {
	var names []string
	for _, sub := range c.VisibleCommands() {
		names = append(names, sub.Name)
	}
	return names
}
