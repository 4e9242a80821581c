package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/vintages"
	"lieudit/cmd/terminal"
	"lieudit/queries/address/vintage"
)

func (p Program) banStatusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "Show the current vintage: millésime, counts, size, age",
		Flags: []cli.Flag{
			p.dataFlag(),
			&cli.BoolFlag{Name: "sha256", Usage: "reckon the file's SHA-256 too, by which another instance imports it"},
			&cli.BoolFlag{Name: "json", Usage: "print it as JSON"},
		},
		Action: p.printVintageStatus,
	}
}

// vintageStatus is how the vintages of a data folder stand.
type vintageStatus struct {
	File string `json:"fichier"`
	vintage.Meta
	Bytes      int64     `json:"octets"`
	ImportedAt time.Time `json:"importe_le"`
	SHA256     string    `json:"sha256,omitempty"`
	Running    bool      `json:"service"`
	Served     bool      `json:"servi"`
}

var errNoVintage = errors.New("there is no vintage in this data folder yet: lieudit ban import FILE")

func (p Program) printVintageStatus(_ context.Context, c *cli.Command) error {
	folder := vintages.FolderIn(c.String("data"))
	name, err := folder.Current()
	if err == nil && name == "" {
		err = errNoVintage
		if lost := folder.CheckLost(); lost != nil {
			err = lost
		}
	}
	if err != nil {
		return err
	}
	s, err := readVintageStatus(folder, name)
	if err != nil {
		return err
	}
	if c.Bool("sha256") {
		if s.SHA256, err = folder.Checksum(name); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return p.PrintJSON(s)
	}
	return p.PrintFields("millésime", s.Millesime, "addresses", terminal.GroupThousands(s.Addresses), "streets", terminal.GroupThousands(s.Streets), "lieux-dits", terminal.GroupThousands(s.Localities),
		"communes", terminal.GroupThousands(s.Communes), "invented", syntheticNotice(s.Synthetic), "size", terminal.FormatBytes(s.Bytes),
		"imported", fmt.Sprintf("%s, %s ago", p.formatTime(s.ImportedAt), terminal.FormatAge(time.Since(s.ImportedAt))),
		"served", s.describeService(), "file", s.File, "sha256", s.SHA256)
}

func readVintageStatus(folder vintages.Folder, name string) (s vintageStatus, err error) {
	v, err := folder.Open(name)
	if err != nil {
		return s, err
	}
	s = vintageStatus{File: folder.Path(name), Meta: v.Meta, Bytes: v.Size(), ImportedAt: v.Modified().UTC()}
	served, running, err := folder.ServedVintage()
	s.Running, s.Served = running, running && served == name
	return s, errors.Join(err, v.Close())
}

func (s vintageStatus) describeService() string {
	switch {
	case s.Served:
		return "by the running service"
	case s.Running:
		return "not yet: the running service answers from another"
	}
	return "no service runs on this data folder"
}

func syntheticNotice(synthetic bool) string {
	return terminal.EmptyIf(!synthetic, "SYNTHETIC: streets and numbers that exist nowhere")
}
