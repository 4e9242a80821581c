package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/vintages"
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
		return p.printJSON(s)
	}
	return p.printFields("millésime", s.Millesime, "addresses", groupThousands(s.Addresses), "streets", groupThousands(s.Streets), "lieux-dits", groupThousands(s.Localities),
		"communes", groupThousands(s.Communes), "invented", syntheticNotice(s.Synthetic), "size", formatBytes(s.Bytes),
		"imported", fmt.Sprintf("%s, %s ago", p.formatTime(s.ImportedAt), formatAge(time.Since(s.ImportedAt))),
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

// printJSON prints a value as one line of JSON.
func (p Program) printJSON(v any) error { return json.NewEncoder(p.Out).Encode(v) }

func syntheticNotice(synthetic bool) string {
	return emptyIf(!synthetic, "SYNTHETIC: streets and numbers that exist nowhere")
}

// emptyIf is a text, or nothing.
func emptyIf(isEmpty bool, text string) string {
	if isEmpty {
		return ""
	}
	return text
}

// groupThousands is a count with its thousands apart.
func groupThousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func formatBytes(bytes int64) string {
	switch {
	case bytes < 1e6:
		return fmt.Sprintf("%.0f kB", float64(bytes)/1e3)
	case bytes < 1e9:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(bytes)/1e9)
}

// formatAge is a duration to the unit that matters.
func formatAge(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%d days", d/day)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}
