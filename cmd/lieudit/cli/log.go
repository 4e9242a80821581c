package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/terminal"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/journal/offline"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// logCommand groups the commands on the files of a log. They open no log, take no lock and ask no service.
func (p Program) logCommand() *cli.Command {
	return terminal.NewGroup("log", "The files of the event log: verify them, save what is whole of a damaged one",
		p.logVerifyCommand(), p.logSalvageCommand())
}

// logFlags say which log is meant: both of a data folder, or one alone.
func (p Program) logFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		p.dataFlag(),
		&cli.StringFlag{Name: "log", Usage: "`FOLDER` of one log alone, such as that of lieudit node", TakesFile: true},
		&cli.BoolFlag{Name: "json", Usage: "print the result as JSON"},
	}, more...)
}

// logFolder is the folder of one log. name is empty for one that --log names.
type logFolder struct{ name, path string }

// logFolders are the folders that the flags name.
func logFolders(c *cli.Command) ([]logFolder, error) {
	if log := c.String("log"); log != "" {
		if c.IsSet("data") {
			return nil, terminal.NewUsageError(c, "--data and --log exclude each other")
		}
		return []logFolder{{"", log}}, nil
	}
	var all []logFolder
	for _, name := range []string{"core", "usage"} {
		all = append(all, logFolder{name, filepath.Join(c.String("data"), "log", name)})
	}
	return all, nil
}

// namedFolder is the flag that names the logs, and its value.
func namedFolder(c *cli.Command) (flag, folder string) {
	if log := c.String("log"); log != "" {
		return "--log", log
	}
	return "--data", c.String("data")
}

// logVerifyCommand is lieudit log verify: offline.VerifyLog on each log.
func (p Program) logVerifyCommand() *cli.Command {
	return &cli.Command{
		Name:  "verify",
		Usage: "Read every byte of the log and check it; nothing is changed, and the service may run",
		Description: `  lieudit log verify
  lieudit log verify --data /var/lib/lieudit
  lieudit log verify --log /var/lib/lieudit/node

It checks every CRC, the chain from event to event, the revisions of every stream, that appends are whole, and the
indexes. It exits 1 when a log is damaged or missing, and says where.`,
		Flags:  p.logFlags(),
		Action: p.verifyLogs,
	}
}

// verifyLogs verifies every log, also after one was found damaged, and then fails with all that is wrong.
func (p Program) verifyLogs(ctx context.Context, c *cli.Command) error {
	folders, err := logFolders(c)
	if err != nil {
		return err
	}
	reports := []logReport{}
	var wrong []error
	for _, f := range folders {
		bar := p.NewProgressBar()
		v, err := offline.VerifyLog(ctx, f.path, func(done, total int64) { bar.Update("reading "+f.path, done, total) })
		bar.Clear()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		reports = append(reports, newLogReport(f, v, err))
		wrong = append(wrong, p.explainLogError(c, f, v.Contents, err))
	}
	if err := p.printLogReports(c, reports); err != nil {
		return err
	}
	return errors.Join(wrong...)
}

// logReport is what verify prints of one log.
type logReport struct {
	Folder   string     `json:"dossier"`
	State    string     `json:"etat"` // whole, damaged, missing or unreadable
	LogID    string     `json:"log,omitempty"`
	Events   int        `json:"evenements"` // before the damage
	Segments int        `json:"segments"`
	End      uint64     `json:"fin"`
	LastTime *time.Time `json:"dernier,omitempty"`
	Damage   *logDamage `json:"dommage,omitempty"`
	Indexes  []string   `json:"index_a_refaire,omitempty"`
}

// logDamage is the first damage of a log.
type logDamage struct {
	Position uint64 `json:"position"`
	Reason   string `json:"raison"`
}

func newLogReport(f logFolder, v offline.Verified, err error) logReport {
	r := logReport{
		Folder: f.path, State: "whole", Events: v.Events, Segments: v.Segments, End: uint64(v.End), Indexes: v.Indexes,
		LogID: terminal.EmptyIf(v.Segments == 0, v.LogID.String()), LastTime: timeOrNil(v.LastTime),
	}
	corrupt, isDamaged := errors.AsType[*eventstore.CorruptError](err)
	switch {
	case isDamaged:
		r.State, r.Damage = "damaged", &logDamage{uint64(corrupt.Position), corrupt.Reason}
	case isMissingLog(err):
		r.State = "missing"
	case err != nil:
		r.State = "unreadable"
	}
	return r
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// isMissingLog reports whether an error means that there is no folder, or no log in it.
func isMissingLog(err error) bool {
	return errors.Is(err, journal.ErrNoLog) || errors.Is(err, os.ErrNotExist)
}

func (p Program) printLogReports(c *cli.Command, reports []logReport) error {
	if c.Bool("json") {
		return p.PrintJSON(reports)
	}
	rows := terminal.Table{{"LOG", "STATE", "EVENTS", "SEGMENTS", "LAST EVENT", "UUID"}}
	var notes []string
	for _, r := range reports {
		last := ""
		if r.LastTime != nil {
			last = p.formatTime(*r.LastTime)
		}
		rows = append(rows, []string{r.Folder, r.State, terminal.GroupThousands(r.Events), fmt.Sprint(r.Segments), last, r.LogID})
		for _, name := range r.Indexes {
			path := filepath.Join(r.Folder, name)
			notes = append(notes, "The index "+path+" is missing or damaged: the service makes it again at its next start.")
		}
	}
	err := p.PrintTable(rows)
	for _, note := range notes {
		err = errors.Join(err, p.PrintLine("%s", note))
	}
	return err
}

// explainLogError says what is wrong with a log, what that means and what to do. It is nil when nothing is.
func (p Program) explainLogError(c *cli.Command, f logFolder, whole offline.Contents, err error) error {
	corrupt, isDamaged := errors.AsType[*eventstore.CorruptError](err)
	switch {
	case isDamaged:
		return fmt.Errorf("the log in %s is damaged at position %d: %s\n%s; nothing behind it can be relied on\n"+
			"stop the service, then restore a backup, or save what is whole:\n  %s",
			f.path, corrupt.Position, corrupt.Reason, p.describeWhole(whole), salvageLine(namedFolder(c)))
	case isMissingLog(err):
		return fmt.Errorf("there is no log in %s: restore a backup of it, or name another folder with --data or --log", f.path)
	}
	return err
}

// salvageLine is the command that saves what is whole of the log that --log names, or of both of the data folder that --data
// names.
func salvageLine(flag, folder string) string {
	out := filepath.Clean(folder) + "-salvaged"
	if flag == "--data" {
		out = filepath.Join(folder, "log-salvaged")
	}
	return fmt.Sprintf("lieudit log salvage %s %s --out %s", flag, folder, out)
}

// describeWhole says in a few words what a log holds before its damage.
func (p Program) describeWhole(contents offline.Contents) string {
	if contents.Events == 0 {
		return "no event is whole before it"
	}
	return fmt.Sprintf("whole before it: %s, the last of %s", countNoun(contents.Events, "event"), p.formatTime(contents.LastTime))
}

// countNoun is a count with its noun, in the plural unless it is one.
func countNoun(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return terminal.GroupThousands(n) + " " + noun + "s"
}

// logSalvageCommand is lieudit log salvage: offline.SalvageLog on each log.
func (p Program) logSalvageCommand() *cli.Command {
	return &cli.Command{
		Name:  "salvage",
		Usage: "Make a new log of all that is whole in a damaged one; the damaged one is not changed",
		Description: `  lieudit log salvage --out ./log-salvaged
  lieudit log salvage --log /var/lib/lieudit/node --out /var/lib/lieudit/node-salvaged

Stop the service before. The new log ends before the first damage and keeps its UUID and its positions. Events that can
still be read behind the damage are named and written beside it (lost.ndjson), as they stand on the log, personal texts
encrypted: what came between them is missing, so a person has to see what is to be done again. The command prints how to
put the new log in its place. If there is a backup that is newer than the damage, restore that instead.`,
		Flags:  p.logFlags(&cli.StringFlag{Name: "out", Usage: "new `FOLDER` for the log that is made", Required: true, TakesFile: true}),
		Action: p.salvageLogs,
	}
}

// salvageLogs salvages every log into a folder of its name below --out, or one alone into --out itself.
func (p Program) salvageLogs(ctx context.Context, c *cli.Command) error {
	folders, err := logFolders(c)
	if err != nil {
		return err
	}
	reports := []salvageReport{}
	var wrong []error
	for _, f := range folders {
		out := filepath.Join(c.String("out"), f.name)
		s, err := offline.SalvageLog(ctx, f.path, out)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case isMissingLog(err):
			err = fmt.Errorf("there is no log in %s: nothing can be saved of it", f.path)
		case err == nil:
			reports = append(reports, newSalvageReport(f, out, s))
			if !s.HasLog {
				err = fmt.Errorf("the first segment of %s cannot be read: no log can be made of the others", f.path)
			}
		}
		wrong = append(wrong, err)
	}
	if err := p.printSalvageReports(c, reports); err != nil {
		return err
	}
	if err := errors.Join(wrong...); err != nil || c.Bool("json") {
		return err
	}
	if !slices.ContainsFunc(reports, salvageReport.wasDamaged) {
		return p.PrintLine("Nothing is damaged: what stands in %s is a copy, and nothing has to be moved.", c.String("out"))
	}
	return p.printPutInPlace(c)
}

// salvageReport is what salvage prints of one log.
type salvageReport struct {
	Folder      string     `json:"dossier"`
	Out         string     `json:"nouveau"`
	Events      int        `json:"evenements"`
	End         uint64     `json:"fin"`
	LastTime    *time.Time `json:"dernier,omitempty"`
	Mended      []string   `json:"entetes_refaits,omitempty"`
	Damage      *logDamage `json:"dommage,omitempty"`
	LostEvents  int        `json:"evenements_perdus_lisibles"`
	LostFrom    *time.Time `json:"perdus_depuis,omitempty"`
	LostTo      *time.Time `json:"perdus_jusqu_a,omitempty"`
	LostStreams []string   `json:"flux_perdus,omitempty"`
	Accounts    []string   `json:"comptes_touches,omitempty"`
}

func (r salvageReport) wasDamaged() bool { return r.Damage != nil || len(r.Mended) > 0 }

func newSalvageReport(f logFolder, out string, s offline.Salvaged) salvageReport {
	r := salvageReport{
		Folder: f.path, Out: out, Events: s.Events, End: uint64(s.End), LastTime: timeOrNil(s.LastTime), Mended: s.Mended,
		LostEvents: s.LostEvents(), LostFrom: timeOrNil(s.LostFirstTime), LostTo: timeOrNil(s.LostLastTime),
	}
	if s.Damage != nil {
		r.Damage = &logDamage{uint64(s.Damage.Position), s.Damage.Reason}
	}
	for _, l := range s.Lost {
		r.LostStreams = append(r.LostStreams, l.Stream)
		if account := streamAccount(l.Stream); account != "" {
			r.Accounts = append(r.Accounts, account)
		}
	}
	slices.Sort(r.Accounts)
	r.Accounts = slices.Compact(r.Accounts)
	return r
}

// streamAccount is the account that a stream belongs to, "" for a stream of none. A stream of usage that several contracts share is of none:
// its events name accounts by numbers, which only the whole stream gives.
func streamAccount(stream string) string {
	if account, _, ok := usagefold.ParseStreamName(stream); ok {
		return account
	}
	if owner := table.StreamOwner(stream); !strings.HasPrefix(owner, "/") {
		return owner
	}
	return ""
}

func (p Program) printSalvageReports(c *cli.Command, reports []salvageReport) error {
	if c.Bool("json") {
		return p.PrintJSON(reports)
	}
	for _, r := range reports {
		if err := p.PrintFields(p.salvageFields(r)...); err != nil {
			return err
		}
		if err := p.PrintLine(""); err != nil {
			return err
		}
	}
	return nil
}

// salvageFields are the fields of a report for people.
func (p Program) salvageFields(r salvageReport) []string {
	fields := []string{"log", r.Folder, "saved to", r.Out, "events saved", terminal.GroupThousands(r.Events)}
	if r.LastTime != nil {
		fields = append(fields, "the last of", p.formatTime(*r.LastTime))
	}
	if len(r.Mended) > 0 {
		fields = append(fields, "headers made again", strings.Join(r.Mended, " "))
	}
	if r.Damage == nil {
		return append(fields, "damage", "none: the log is whole")
	}
	fields = append(fields, "damage", fmt.Sprintf("at position %d: %s", r.Damage.Position, r.Damage.Reason))
	if r.LostEvents == 0 {
		return append(fields, "lost", fmt.Sprintf("what stood from position %d on; nothing behind it can be read", r.End))
	}
	return append(fields,
		"lost", fmt.Sprintf("what stood from position %d on; of it %s of %s can still be read, from %s to %s", r.End,
			countNoun(r.LostEvents, "event"), countNoun(len(r.LostStreams), "stream"), p.formatTime(*r.LostFrom), p.formatTime(*r.LostTo)),
		"accounts", listSome(r.Accounts), "streams", listSome(r.LostStreams),
		"written to", filepath.Join(r.Out, offline.LostName))
}

// listSome lists the first names, and how many more there are.
func listSome(names []string) string {
	const most = 20
	if len(names) <= most {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], " "), len(names)-most)
}

// printPutInPlace prints the commands that replace the damaged log with the new one and keep the damaged one.
func (p Program) printPutInPlace(c *cli.Command) error {
	place, serve := filepath.Join(c.String("data"), "log"), "lieudit serve --data "+c.String("data")
	if log := c.String("log"); log != "" {
		place, serve = filepath.Clean(log), "lieudit node --data "+log
	}
	return p.PrintLine(`Put it in place while no service runs, start the service, and have the read models made from it:

  mv %s %s-damaged
  mv %s %s
  %s
  lieudit projections rebuild --all`, place, place, filepath.Clean(c.String("out")), place, serve)
}
