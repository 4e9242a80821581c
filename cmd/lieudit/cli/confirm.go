package cli

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/terminal"
)

// errDeclined: the user was asked and did not agree.
var errDeclined = errors.New("nothing was written")

// yesFlag lets a script do what cannot be undone.
func yesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "yes", Usage: "do it without asking; needed where standard output is no terminal"}
}

// confirmID makes sure that an act which cannot be undone is meant: on a terminal the user types the id once more, elsewhere
// --yes is needed. act names the act: "closing account".
func (s session) confirmID(act, id string) error {
	switch {
	case s.Bool("yes"):
		return nil
	case !s.IsTerminal || s.Bool("json"):
		return terminal.NewUsageError(s.Command, "--yes is missing: %s %s cannot be undone", act, id)
	}
	answer, err := s.readAnswer(fmt.Sprintf("There is no way back from %s %s. Type its id to go on:", act, terminal.SanitizeText(id)))
	if err == nil && answer != id {
		err = errDeclined
	}
	return err
}

// ask asks a question of yes or no. Anything but yes is errDeclined.
func (s session) ask(question string) error {
	answer, err := s.readAnswer(question + " [y/N]")
	if err != nil {
		return err
	}
	if a := strings.ToLower(answer); a != "y" && a != "yes" && a != "o" && a != "oui" {
		return errDeclined
	}
	return nil
}

// readAnswer prints a question and reads the line that answers it. An input that ends is an empty answer.
func (s session) readAnswer(question string) (string, error) {
	if _, err := fmt.Fprintf(s.Err, "%s ", question); err != nil {
		return "", err
	}
	answer, _ := bufio.NewReader(s.In).ReadString('\n')
	return strings.TrimSpace(answer), nil
}
