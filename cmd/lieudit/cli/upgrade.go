package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/terminal"
	"lieudit/schemas/body"
)

// upgradeHelp says how several instances get to a new version, for the help of both commands.
const upgradeHelp = `Instances of an old and a new version share the same servers for as long as it takes: exchange one after the
other, and go back if need be. When all run the new version, lieudit upgrade finish ends it: from then on the
new version may write what the old one cannot read, and the old one refuses to start. Without --eventstore
there is one instance, and its start finishes the upgrade.`

// upgradeCommand groups what belongs to an upgrade of the program: /upgrade of the customer area.
func (p Program) upgradeCommand() *cli.Command {
	return terminal.NewGroup("upgrade", "How far an upgrade to a new version is; finish it", p.upgradeStatusCommand(), p.upgradeFinishCommand())
}

// upgradeStatusCommand is lieudit upgrade status: GET /upgrade.
func (p Program) upgradeStatusCommand() *cli.Command {
	return &cli.Command{
		Name:        "status",
		Usage:       "Show the format of the log, which instances run which version, and what finish would do",
		Description: upgradeHelp,
		Flags:       p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			raw, err := s.client.Get(ctx, "/upgrade", nil)
			return s.printUpgradeResponse(raw, err)
		}),
	}
}

// upgradeFinishCommand is lieudit upgrade finish: POST /upgrade:finish. It cannot be undone, so it asks on a terminal and
// otherwise needs --yes.
func (p Program) upgradeFinishCommand() *cli.Command {
	return &cli.Command{
		Name:        "finish",
		Usage:       "Let all instances write what older versions cannot read; there is no way back",
		Description: upgradeHelp,
		Flags:       p.areaFlags(yesFlag()),
		Action:      p.areaAction(finishUpgrade),
	}
}

func finishUpgrade(ctx context.Context, s session) error {
	if !s.Bool("yes") {
		if !s.IsTerminal || s.Bool("json") {
			return terminal.NewUsageError(s.Command, "there is no way back to an older version: --yes says that it is meant")
		}
		raw, err := s.client.Get(ctx, "/upgrade", nil)
		if err := s.printUpgradeResponse(raw, err); err != nil {
			return err
		}
		var u body.Upgrade
		if err := json.Unmarshal(raw, &u); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		if u.Format >= u.KnownFormat { // it was said that there is nothing to finish
			return nil
		}
		if err := s.ask("There is no way back to an older version. Finish the upgrade?"); err != nil {
			return err
		}
	}
	raw, err := s.client.Post(ctx, "/upgrade:finish", body.Empty{})
	return s.printUpgradeResponse(raw, err)
}

// printUpgradeResponse prints an answer about an upgrade, or returns the error of the request.
func (s session) printUpgradeResponse(raw json.RawMessage, err error) error {
	if err != nil {
		return err
	}
	return printResource(s, raw, s.printUpgrade)
}

// printUpgrade prints the instances as a table, and then in words what finish would do.
func (s session) printUpgrade(u body.Upgrade) error {
	instances, blocking := terminal.Table{{"INSTANCE", "VERSION", "KNOWS FORMAT"}}, 0
	for _, i := range u.Instances {
		instances = append(instances, []string{i.ID, i.Program, fmt.Sprint(i.KnownFormat)})
		if i.IsBlocking {
			blocking++
		}
	}
	return errors.Join(s.PrintTable(instances), s.PrintLine("\n%s", describeUpgrade(u, blocking)))
}

// describeUpgrade says what finish would do.
func describeUpgrade(u body.Upgrade, blocking int) string {
	switch {
	case u.Format >= u.KnownFormat:
		return fmt.Sprintf("The log has format %d. There is nothing to finish.", u.Format)
	case blocking > 0:
		return fmt.Sprintf("The log has format %d. lieudit upgrade finish would raise it to %d: %d of %d instances must be exchanged or stopped first.",
			u.Format, u.KnownFormat, blocking, len(u.Instances))
	}
	return fmt.Sprintf("The log has format %d. lieudit upgrade finish raises it to %d: every instance that runs knows it.", u.Format, u.KnownFormat)
}
