package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/releases"
	"lieudit/cmd/terminal"
	"lieudit/eventstore/disk/dirlock"
	"lieudit/queries/mappedfile"
)

// This file holds what the commands on vintages and on road networks share.

// takeoverTimeout and takeoverSpeed bound the time in which a running service verifies and opens a new release: the timeout
// plus the size of the file at this speed in bytes per second. After that the import fails, although the release is current
// and the service may still take it over. A service reads some 100 MB of it per second while it serves requests.
const (
	takeoverTimeout = time.Minute
	takeoverSpeed   = 20 << 20
	transferSpeed   = 2 << 20 // the same for the time in which all other instances fetch the file, one after the other, and verify it
)

// awaitServed waits until the running service answers from a new release, which is already current. It returns false at once
// if no service runs.
func awaitServed[F any](ctx context.Context, folder releases.Folder[F], name string) (bool, error) {
	info, err := os.Stat(folder.Path(name))
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, takeoverTimeout+time.Duration(info.Size()/takeoverSpeed)*time.Second)
	defer cancel()
	return folder.AwaitServed(ctx, name)
}

// takeover is the outcome for a new release: whether a service runs on the folder and answers from it, and what other instances do.
type takeover struct {
	isServed bool
	dataPath string // absolute path of the data folder: it shows if the command ran in another folder than the service
	releases.Standing
	isLate bool // the time limit for the takeover has passed
}

// awaitTakeover waits until the running service and all other instances answer from a new release. It returns no error for a problem
// of another instance: takeover.err reports that once the result is printed.
func awaitTakeover[F any](ctx context.Context, folder releases.Folder[F], name string) (t takeover, err error) {
	if t.dataPath, err = filepath.Abs(filepath.Dir(filepath.Dir(folder.Path(name)))); err != nil {
		return t, err
	}
	if t.isServed, err = awaitServed(ctx, folder, name); err != nil || !t.isServed {
		return t, err
	}
	info, err := os.Stat(folder.Path(name))
	if err != nil {
		return t, err
	}
	waiting, cancel := context.WithTimeout(ctx, takeoverTimeout+time.Duration(info.Size()/transferSpeed)*time.Second)
	defer cancel()
	t.Standing, err = folder.AwaitInstances(waiting, name)
	if t.isLate = ctx.Err() == nil && waiting.Err() != nil; t.isLate {
		err = nil
	}
	return t, err
}

// others returns the instances other than the one at which the release was imported.
func (t takeover) others() (others []releases.InstanceStanding) {
	for _, i := range t.Instances {
		if !i.IsThis {
			others = append(others, i)
		}
	}
	return others
}

// print prints which services answer from a new release.
func (t takeover) print(p Program) error {
	others, behind := t.others(), t.Behind()
	switch {
	case !t.isServed:
		return p.PrintLine("No service runs on %s (--data); the next one that is started there answers from it.", t.dataPath)
	case t.State == releases.StandingReleased && len(others) > 0 && len(behind) == 0:
		return p.PrintLine("All %d instances answer from it.", len(others)+1)
	case t.State == releases.StandingLocal && t.Reason != "":
		return p.PrintLine("The running service answers from it, and it alone: %s.", t.Reason)
	}
	return p.PrintLine("The running service answers from it.")
}

// err names the instances that do not answer from a new release. It returns nil if all do, or if only this one can.
func (t takeover) err() error {
	switch t.State {
	case releases.StandingSuperseded:
		return errors.New("another one was released after it, and is served: see status")
	case releases.StandingPending:
		if t.isServed {
			return fmt.Errorf("the other instances do not know of it yet, and will be told once it can be released: %s", cmp.Or(t.Reason, "the service has not said why"))
		}
	case releases.StandingReleased:
		var lines []error
		for _, i := range t.Behind() {
			lines = append(lines, fmt.Errorf("%s does not answer from it: %s", i.Describe(), cmp.Or(i.Problem, "it has not taken it over yet")))
		}
		return errors.Join(lines...)
	}
	return nil
}

// currentRelease returns the name of the current release. If there is no release it returns the error none, or a
// *releases.LostError if the folder once had a release of real data.
func currentRelease[F any](folder releases.Folder[F], none error) (string, error) {
	name, err := folder.Current()
	if err == nil && name == "" {
		err = none
		if lost := folder.CheckLost(); lost != nil {
			err = lost
		}
	}
	return name, err
}

// newStatusCommand is the command status of a group of commands.
func (p Program) newStatusCommand(usage string, action cli.ActionFunc) *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: usage,
		Flags: []cli.Flag{
			p.dataFlag(),
			&cli.BoolFlag{Name: "sha256", Usage: "also compute the file's SHA-256, by which another instance imports it"},
			&cli.BoolFlag{Name: "json", Usage: "print it as JSON"},
		},
		Action: action,
	}
}

// openCurrent opens the current release and also returns its name. If there is no release it returns the error of
// currentRelease. The error for a damaged release says how to repair it.
func openCurrent[F any](folder releases.Folder[F], none error) (file F, name string, err error) {
	if name, err = currentRelease(folder, none); err != nil {
		return file, name, err
	}
	if file, err = folder.Open(name); err != nil {
		err = folder.DamagedError(name, err)
	}
	return file, name, err
}

// releaseStatus is the file of the current release, as --json prints it. Running reports whether a service runs on the folder,
// Served whether it answers from this release.
type releaseStatus struct {
	File       string    `json:"fichier"`
	Bytes      int64     `json:"octets"`
	ImportedAt time.Time `json:"importe_le"`
	SHA256     string    `json:"sha256,omitempty"`
	Running    bool      `json:"service"`
	Served     bool      `json:"servi"`
	takeoverJSON
	standing   releases.Standing
	servesNone bool // a service runs, and answers from no release
}

// readReleaseStatus reads from the folder whether a service answers from an open release, and its checksum if wanted, for which
// it reads the whole file.
func readReleaseStatus[F any](folder releases.Folder[F], name string, file *mappedfile.File, withChecksum bool) (s releaseStatus, err error) {
	s = releaseStatus{File: folder.Path(name), Bytes: file.Size(), ImportedAt: file.Modified().UTC()}
	served, running, err := folder.ServedName()
	s.Running, s.Served, s.servesNone = running, running && served == name, running && served == ""
	if err == nil && withChecksum {
		s.SHA256, err = folder.Checksum(name)
	}
	if standing, standingErr := folder.ReadStanding(); running && standingErr == nil && standing.Name == name {
		s.standing, s.takeoverJSON = standing, standingJSON(standing)
	}
	return s, err
}

// printStatus prints the fields of a release, those of its file, and what each instance serves.
func (p Program) printStatus(fields []string, s releaseStatus) error {
	if err := p.PrintFields(append(append(fields, p.describeRelease(s)...), "released", s.describeStanding())...); err != nil {
		return err
	}
	if len(s.standing.Instances) < 2 {
		return nil
	}
	for _, i := range s.standing.Instances {
		if err := p.PrintLine("  %s", terminal.SanitizeText(describeInstance(i))); err != nil {
			return err
		}
	}
	return nil
}

// describeInstance describes what an instance serves.
func describeInstance(i releases.InstanceStanding) string {
	serves := "none"
	if i.Serves != "" {
		serves = fmt.Sprintf("%s, %.12s", cmp.Or(i.Date, "not released"), i.Serves)
	}
	switch {
	case i.Problem != "":
		serves += ": " + i.Problem
	case !i.IsCurrent:
		serves += ": not the last release"
	}
	name := i.Describe()
	if i.IsThis {
		name += ", this one"
	}
	return name + ": " + serves
}

// describeStanding describes whether all instances should serve a release. It returns "" if that is unknown.
func (s releaseStatus) describeStanding() string {
	switch s.standing.State {
	case releases.StandingReleased:
		return "to all instances"
	case releases.StandingSuperseded:
		return "yes, and another one after it, which is not served here yet"
	case releases.StandingLocal:
		return terminal.EmptyIf(s.standing.Reason == "", "no: "+s.standing.Reason)
	case releases.StandingPending:
		return "not yet: " + cmp.Or(s.standing.Reason, "it is about to be")
	}
	return ""
}

// newServeCommand is the command serve of a group of commands: it goes back to a release that is still in the data folder.
func (p Program) newServeCommand(noun string, action cli.ActionFunc) *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "Serve a " + noun + " again that is still in the data folder, on all instances",
		ArgsUsage: "SUM",
		Description: "The one before is kept until the next import. It is named by its SHA-256, of which the first digits are enough; one that is not\n" +
			"there is an error that lists those that are.",
		Flags:  []cli.Flag{p.dataFlag()},
		Action: action,
	}
}

// serveRelease makes a release current by its sum, and returns when all instances answer from it.
func serveRelease[F any](ctx context.Context, p Program, c *cli.Command, folder releases.Folder[F]) error {
	if c.Args().Len() != 1 {
		return terminal.NewUsageError(c, "name one SUM")
	}
	name, err := folder.Serve(ctx, c.Args().First(), time.Now())
	if held, ok := errors.AsType[*dirlock.HeldError](err); ok {
		return fmt.Errorf("an import is at work: %w", held)
	}
	if err != nil {
		return err
	}
	taken, err := awaitTakeover(ctx, folder, name)
	if err != nil {
		return err
	}
	return errors.Join(taken.print(p), taken.err())
}

// describeRelease returns the fields that describe the file of a release.
func (p Program) describeRelease(s releaseStatus) []string {
	return []string{
		"size", terminal.FormatBytes(s.Bytes),
		"imported", fmt.Sprintf("%s, %s ago", p.formatTime(s.ImportedAt), terminal.FormatAge(time.Since(s.ImportedAt))),
		"served", s.describeService(), "file", s.File, "sha256", s.SHA256,
	}
}

// describeService names the service, if any, that answers from the release.
func (s releaseStatus) describeService() string {
	switch {
	case s.Served:
		return "by the running service"
	case s.servesNone:
		return "no: the running service answers from none"
	case s.Running:
		return "not yet: the running service answers from another"
	}
	return "no service runs on this data folder"
}

// takeoverJSON is what --json prints about the instances.
type takeoverJSON struct {
	State     string         `json:"etat,omitempty"`
	Reason    string         `json:"raison,omitempty"`
	Instances []instanceJSON `json:"instances,omitempty"`
}

// instanceJSON is an instance, as --json prints it.
type instanceJSON struct {
	URL       string `json:"url,omitempty"`
	Host      string `json:"machine"`
	Program   string `json:"version"`
	Date      string `json:"date,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
	IsCurrent bool   `json:"a_jour"`
	Problem   string `json:"probleme,omitempty"`
}

// stateNames are the states as --json prints them.
func stateNames() map[releases.StandingState]string {
	return map[releases.StandingState]string{
		releases.StandingPending: "en_attente", releases.StandingLocal: "local", releases.StandingReleased: "publie", releases.StandingSuperseded: "remplace",
	}
}

// json returns what --json prints about the instances.
func (t takeover) json() takeoverJSON { return standingJSON(t.Standing) }

// standingJSON is a standing, as --json prints it.
func standingJSON(s releases.Standing) takeoverJSON {
	shown := takeoverJSON{State: stateNames()[s.State], Reason: s.Reason}
	for _, i := range s.Instances {
		shown.Instances = append(shown.Instances, instanceJSON{i.URL, i.Host, i.Program, i.Date, i.Serves, i.IsCurrent, i.Problem})
	}
	return shown
}
