package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/backup"
	"lieudit/cmd/terminal"
	"lieudit/schemas/token"
)

// backupCommand is lieudit backup: backup.Create, or backup.Verify with --verify. It works on the files of a service, which may run.
func (p Program) backupCommand() *cli.Command {
	return &cli.Command{
		Name:  "backup",
		Usage: "Copy a running service into one file, or verify such a file",
		Description: `The file holds the logs, the vault, the served vintage, the served road network and the operator's token: all that cannot be
made again. Everything that was acknowledged before is in it. The service runs on meanwhile.
Keep the file as safe as the data folder: it holds the keys of personal fields, in clear without a master key.

  lieudit backup --out /backups/lieudit-$(date +%F).backup
  lieudit backup --data /var/lib/lieudit --postgres postgres://lieudit@127.0.0.1/lieudit --node /var/lib/node --out FILE
  lieudit backup --verify FILE

A log on EventStoreDB is not in the file: copy EventStoreDB first, with its own tools, and run this after it. The vault must not be
older than the log: it has the keys of what the log holds.`,
		Flags: append(p.backupFlags(),
			&cli.StringFlag{Name: "out", Usage: "`FILE` to write; it must not exist", TakesFile: true},
			&cli.StringFlag{Name: "verify", Usage: "`FILE` of which every byte is checked; nothing is written", TakesFile: true},
			&cli.BoolFlag{Name: "without-vintages", Usage: "leave the addresses out; the ids that they inherited are then in the data folder alone"},
			&cli.BoolFlag{Name: "without-networks", Usage: "leave the road network out; it can be imported again"},
			&cli.BoolFlag{Name: "json", Usage: "print what the file holds as JSON"},
		),
		Action: p.backUp,
	}
}

// backupFlags returns the flags that locate the parts of a service, for a backup and for a restore.
func (p Program) backupFlags() []cli.Flag {
	return []cli.Flag{
		p.dataFlag(),
		&cli.StringFlag{Name: "node", Usage: "`FOLDER` of the lieudit node that keeps the log; else it is in the data folder", TakesFile: true},
		p.StringFlag("eventstore", "", "EventStoreDB with the log, as `esdb://…`, where there is no --node"),
		p.StringFlag("postgres", "", "Postgres with the vault, as `postgres://…`; a file of the data folder when left out"),
	}
}

// backUp writes or verifies a backup and prints what it holds.
func (p Program) backUp(ctx context.Context, c *cli.Command) error {
	out, verified := c.String("out"), c.String("verify")
	if (out == "") == (verified == "") {
		return terminal.NewUsageError(c, "name a file to write with --out FILE, or one to check with --verify FILE")
	}
	if err := validatePostgres(c, c.String("postgres")); err != nil {
		return err
	}
	bar := p.NewProgressBar()
	if verified != "" {
		m, err := backup.Verify(ctx, verified, func(done, total int64) { bar.Update("reading", done, total) })
		bar.Clear()
		if err != nil {
			return err
		}
		return p.printBackup(c, m, verified+" is whole")
	}
	if p.LowerPriority != nil {
		p.LowerPriority()
	}
	m, err := backup.Create(ctx, backup.Source{
		Data: c.String("data"), Node: c.String("node"), EventStore: c.String("eventstore"), Postgres: c.String("postgres"),
		WithoutVintages: c.Bool("without-vintages"), WithoutNetworks: c.Bool("without-networks"),
		Program: p.Version, Log: p.newLogger("text"), Now: time.Now,
		Progress: func(done, total int64) { bar.Update("writing", done, total) },
	}, out)
	bar.Clear()
	if err != nil {
		return err
	}
	return p.printBackup(c, m, out+" is written")
}

// printBackup prints what a backup holds: a table for people, the manifest with --json.
func (p Program) printBackup(c *cli.Command, m backup.Manifest, headline string) error {
	if c.Bool("json") {
		return p.PrintJSON(m)
	}
	rows := terminal.Table{{"PART", "FILES", "SIZE", "HOLDS"}}
	for _, g := range m.Groups() {
		rows = append(rows, []string{partName(g.Name), fmt.Sprint(g.Files), terminal.FormatBytes(g.Bytes), p.describePart(m, g.Name)})
	}
	if err := p.PrintTable(rows); err != nil {
		return err
	}
	if m.EventStore {
		const where = "The log is on EventStoreDB and NOT in this file. Its own copy must be older than this file, and be kept with it."
		if err := p.PrintLine(where); err != nil {
			return err
		}
	}
	return p.PrintLine("%s: all that was acknowledged before %s, by lieudit %s.",
		terminal.SanitizeText(headline), p.formatTime(m.TakenAt), terminal.SanitizeText(m.Program))
}

// partName is what people call a part of a backup.
func partName(group string) string {
	names := map[string]string{
		backup.CoreLog: "log", backup.UsageLog: "usage log", backup.NodeLog: "log of the node", "vault.db": "vault",
		"vintages": "addresses", "last-vintage": "name of the last vintage", "networks": "roads", "last-network": "name of the last network",
		"operator-token": "operator's token",
	}
	if name, ok := names[group]; ok {
		return name
	}
	return group
}

// describePart says what a log or the vault holds, and which release a folder has; "" of the other parts.
func (p Program) describePart(m backup.Manifest, group string) string {
	if i := slices.IndexFunc(m.Logs, func(l backup.Log) bool { return l.Name == group }); i >= 0 {
		l := m.Logs[i]
		return countNoun(l.Events, "event") + terminal.EmptyIf(l.Until.IsZero(), ", the last of "+p.formatTime(l.Until))
	}
	if group == "vault.db" {
		return countNoun(m.VaultRows, "key")
	}
	for _, f := range m.Files {
		if name, ok := strings.CutPrefix(f.Name, group+"/"); ok && path.Ext(name) != "" {
			return strings.TrimSuffix(name, path.Ext(name))
		}
	}
	return ""
}

// restoreCommand is lieudit restore: backup.Restore.
func (p Program) restoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "Restore a backup into an empty folder",
		ArgsUsage: "FILE",
		Description: `What was erased or revoked after the backup would be back: name it, and it is repeated before anything can be served.
--since reads it from what is left of the newer log, a salvaged one too; --erase, --revoke and --revoke-token name it by hand;
--nothing-since says that there was nothing. Without any of them it asks, and a script is refused.

  lieudit restore FILE --data ./restored --since ./lieudit-data
  lieudit restore FILE --data ./restored --erase mende --revoke shop/0199c1d2-7c1b-7b90-8f5e-0242ac120002
  lieudit restore FILE --data ./restored --node ./restored-node --postgres postgres://lieudit@127.0.0.1/new --nothing-since

After an error, or a kill, no service starts on the folder; but where the newer log cannot be read whole, all is restored that can be,
what is missing is said, and the exit code is 1. Read models are made anew when the service starts.`,
		Flags: append(p.backupFlags(),
			p.vaultKeyFlag(),
			&cli.StringFlag{Name: "since", Usage: "`FOLDER` of the newer log, or the data folder that it is in", TakesFile: true},
			&cli.StringSliceFlag{Name: "erase", Usage: "`ACCOUNT` that was erased since; repeat it for more"},
			&cli.StringSliceFlag{Name: "revoke", Usage: "`ACCOUNT/KEY` that was revoked since; repeat it for more"},
			&cli.StringSliceFlag{Name: "revoke-token", Usage: "`ID` of a customer-area token that was revoked since; repeat it for more"},
			&cli.BoolFlag{Name: "nothing-since", Usage: "nothing was erased or revoked since"},
			&cli.BoolFlag{Name: "accept-lost-keys", Usage: "restore although the vault lacks keys; the accounts concerned can then only be closed and erased"},
			&cli.BoolFlag{Name: "json", Usage: "print what was done as JSON"},
		),
		Action: p.restore,
	}
}

// restore asks for what was erased and revoked since, restores, and says what is left to do.
func (p Program) restore(ctx context.Context, c *cli.Command) error {
	if err := validatePostgres(c, c.String("postgres")); err != nil {
		return err
	}
	since, err := p.parseSince(c)
	if err != nil {
		return err
	}
	key, err := p.readMasterKey(c, vaultKeyName)
	if err != nil {
		return err
	}
	file, bar := c.Args().First(), p.NewProgressBar()
	done, err := backup.Restore(ctx, file, backup.Target{
		Data: c.String("data"), Node: c.String("node"), EventStore: c.String("eventstore"), Postgres: c.String("postgres"),
		VaultKey: key, AcceptLostKeys: c.Bool("accept-lost-keys"), TokenPrefixes: token.DefaultPrefixes,
		Program: p.Version, Log: p.newLogger("text"), Now: time.Now,
		Progress: func(done, total int64) { bar.Update("unpacking", done, total) },
	}, since)
	bar.Clear()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = p.PrintJSON(done)
	} else {
		err = p.printRestored(c, done)
	}
	return errors.Join(err, p.describeNewerDamage(c, done))
}

// describeNewerDamage is the error about a newer log that could not be read whole. The restore is done then; it is not known whether
// all that was erased and revoked since is so again.
func (p Program) describeNewerDamage(c *cli.Command, done backup.Restored) error {
	if done.NewerDamage == "" {
		return nil
	}
	read := "not known up to when"
	if done.NewerUntil != nil {
		read = "whole up to " + p.formatTime(*done.NewerUntil)
	}
	return fmt.Errorf("%s is restored, but the newer log could not be read whole: %s\nread of it: %s, and %s behind the damage\n"+
		"what else was erased or revoked since is not known: look for it, and do it again, before customers are served",
		c.String("data"), done.NewerDamage, read, countNoun(done.NewerBehind, "event"))
}

// parseSince reads the flags on what was erased and revoked since. Without any of them it asks on a terminal.
func (p Program) parseSince(c *cli.Command) (since backup.Since, err error) {
	since = backup.Since{Log: c.String("since"), Erased: c.StringSlice("erase"), Tokens: c.StringSlice("revoke-token")}
	for _, text := range c.StringSlice("revoke") {
		key, err := parseKeyName(text)
		if err != nil {
			return since, terminal.NewUsageError(c, "--revoke: %v", err)
		}
		since.Keys = append(since.Keys, key)
	}
	isNamed := since.Log != "" || len(since.Erased)+len(since.Keys)+len(since.Tokens) > 0
	switch {
	case isNamed && c.Bool("nothing-since"):
		return since, terminal.NewUsageError(c, "--nothing-since contradicts --since, --erase, --revoke and --revoke-token")
	case isNamed || c.Bool("nothing-since"):
		return since, nil
	case !p.IsTerminal || c.Bool("json"):
		return since, terminal.NewUsageError(c,
			"what was erased or revoked since the backup? --since FOLDER, --erase ACCOUNT, --revoke ACCOUNT/KEY, --revoke-token ID, or --nothing-since")
	}
	m, err := backup.ReadManifest(c.Args().First())
	if err != nil {
		return since, err
	}
	return p.askSince(m)
}

// parseKeyName reads ACCOUNT/KEY.
func parseKeyName(text string) (backup.KeyName, error) {
	account, key, ok := strings.Cut(text, "/")
	if !ok || account == "" || key == "" {
		return backup.KeyName{}, fmt.Errorf("%q is not of the form ACCOUNT/KEY", text)
	}
	return backup.KeyName{Account: account, Key: key}, nil
}

// errNotAnswered: the questions ended without an answer.
var errNotAnswered = errors.New("nothing was restored")

// askSince asks for everything that was erased or revoked. If the operator names nothing, it asks for confirmation.
func (p Program) askSince(m backup.Manifest) (since backup.Since, err error) {
	fmt.Fprintf(p.Err, "The backup is of %s. What was erased or revoked since would be back: name it here.\n", p.formatTime(m.TakenAt))
	lines := bufio.NewScanner(p.In)
	for _, asked := range []struct {
		question string
		add      func(string) error
	}{
		{"Account that was erased", func(id string) error { since.Erased = append(since.Erased, id); return nil }},
		{"Key that was revoked, as ACCOUNT/KEY", func(text string) error {
			key, err := parseKeyName(text)
			if err == nil {
				since.Keys = append(since.Keys, key)
			}
			return err
		}},
		{"Customer-area token that was revoked, by its id", func(id string) error { since.Tokens = append(since.Tokens, id); return nil }},
	} {
		if err := p.askEach(lines, asked.question, asked.add); err != nil {
			return since, err
		}
	}
	if len(since.Erased)+len(since.Keys)+len(since.Tokens) > 0 {
		return since, nil
	}
	fmt.Fprint(p.Err, "Nothing was erased or revoked since: is that so? [y/N] ")
	if !lines.Scan() || !strings.EqualFold(strings.TrimSpace(lines.Text()), "y") {
		return since, errNotAnswered
	}
	return since, nil
}

// askEach asks one question until the answer is empty. An answer that add refuses is asked for again.
func (p Program) askEach(lines *bufio.Scanner, question string, add func(string) error) error {
	for {
		fmt.Fprintf(p.Err, "%s (empty: no more): ", question)
		if !lines.Scan() {
			return errNotAnswered
		}
		answer := strings.TrimSpace(lines.Text())
		if answer == "" {
			return nil
		}
		if err := add(answer); err != nil {
			fmt.Fprintln(p.Err, err)
		}
	}
}

// printRestored prints what was restored and repeated, and what an operator does next.
func (p Program) printRestored(c *cli.Command, done backup.Restored) error {
	count := func(n int) string { return terminal.EmptyIf(n == 0, terminal.GroupThousands(n)) }
	a := done.Applied
	err := p.PrintFields(
		"restored", c.String("data"), "node", c.String("node"), "as of", p.formatTime(done.Manifest.TakenAt),
		"closed again", count(a.Closed), "erased again", count(a.Erased), "keys revoked again", count(a.Keys),
		"tokens revoked again", count(a.Tokens), "sessions ended", count(a.Ended), "not in the backup", count(a.Unknown),
	)
	if err != nil {
		return err
	}
	if c.String("postgres") != "" {
		const next = "Read models in Postgres may be newer than the log: once the service runs, lieudit projections rebuild --all."
		if err := p.PrintLine(next); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(c.String("data"), "operator-token")); err != nil || a.Tokens > 0 {
		if err := p.PrintLine("Where the operator's token is missing or was revoked: lieudit token recover."); err != nil {
			return err
		}
	}
	return p.PrintLine("The service can be started on it. Its read models are made anew from the log.")
}
