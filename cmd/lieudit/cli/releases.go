package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/releases"
	"lieudit/cmd/terminal"
	"lieudit/queries/mappedfile"
)

// What the commands on vintages and on road networks share.

// takeoverTimeout and takeoverSpeed bound the time in which a running service verifies and opens a new release: so long, and so
// many bytes of the file a second. After it the import is an error, although the release is current and the service may
// still take it over. A service reads some 100 MB a second of it beside its requests.
const (
	takeoverTimeout = time.Minute
	takeoverSpeed   = 20 << 20
)

// awaitServed waits until the running service answers from a new release, which is current already. It returns false at once
// where no service runs.
func awaitServed[F any](ctx context.Context, folder releases.Folder[F], name string) (bool, error) {
	info, err := os.Stat(folder.Path(name))
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, takeoverTimeout+time.Duration(info.Size()/takeoverSpeed)*time.Second)
	defer cancel()
	return folder.AwaitServed(ctx, name)
}

// printServed prints whether a running service answers from a new release.
func (p Program) printServed(isServed bool) error {
	if isServed {
		return p.PrintLine("The running service answers from it.")
	}
	return p.PrintLine("No service runs on this data folder; the next one answers from it.")
}

// currentRelease is the name of the current release. Where there is none the error is none, unless the folder had a release of
// real data once.
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
			&cli.BoolFlag{Name: "sha256", Usage: "reckon the file's SHA-256 too, by which another instance imports it"},
			&cli.BoolFlag{Name: "json", Usage: "print it as JSON"},
		},
		Action: action,
	}
}

// openCurrent opens the current release and returns its name too. Where there is none the error is none, unless the folder had a
// release of real data once; that of a damaged one says how to repair it.
func openCurrent[F any](folder releases.Folder[F], none error) (file F, name string, err error) {
	if name, err = currentRelease(folder, none); err != nil {
		return file, name, err
	}
	if file, err = folder.Open(name); err != nil {
		err = folder.DamagedError(name, err)
	}
	return file, name, err
}

// releaseStatus is the file of the current release, as --json prints it. Running says whether a service runs on the folder,
// Served whether it answers from this release.
type releaseStatus struct {
	File       string    `json:"fichier"`
	Bytes      int64     `json:"octets"`
	ImportedAt time.Time `json:"importe_le"`
	SHA256     string    `json:"sha256,omitempty"`
	Running    bool      `json:"service"`
	Served     bool      `json:"servi"`
	servesNone bool      // a service runs, and answers from no release
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
	return s, err
}

// describeRelease returns the fields that describe the file of a release.
func (p Program) describeRelease(s releaseStatus) []string {
	return []string{
		"size", terminal.FormatBytes(s.Bytes),
		"imported", fmt.Sprintf("%s, %s ago", p.formatTime(s.ImportedAt), terminal.FormatAge(time.Since(s.ImportedAt))),
		"served", s.describeService(), "file", s.File, "sha256", s.SHA256,
	}
}

// describeService says which service, if any, answers from the release.
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
