package cli

import (
	"context"
	"errors"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/guide"
	"lieudit/cmd/terminal"
)

// guideCommand is lieudit guide: it lists the chapters of the operators' guide, or prints one of them or a file that comes
// with it. It needs no service.
func (p Program) guideCommand() *cli.Command {
	return &cli.Command{
		Name:      "guide",
		Usage:     "Read the operators' guide; print its alert rules, dashboard and unit of systemd",
		ArgsUsage: "[CHAPTER]",
		Description: `  lieudit guide
  lieudit guide readiness
  lieudit guide monitoring/alerts.yaml > alerts.yaml`,
		Action: func(_ context.Context, c *cli.Command) error {
			if name := c.Args().First(); name != "" {
				return p.printGuide(c, name)
			}
			return p.listGuide()
		},
	}
}

// listGuide lists the chapters and the files.
func (p Program) listGuide() error {
	chapters, err := guide.Chapters()
	if err != nil {
		return err
	}
	rows := terminal.Table{{"CHAPTER", "ABOUT"}}
	for _, c := range chapters {
		rows = append(rows, []string{c.Name, c.Title})
	}
	files, err := guide.Files()
	if err != nil {
		return err
	}
	for _, name := range files {
		rows = append(rows, []string{name, "a file, printed as it is"})
	}
	return p.PrintTable(rows)
}

// printGuide prints a chapter folded to the width of the terminal, or a file as it is.
func (p Program) printGuide(c *cli.Command, name string) error {
	var unknown *guide.UnknownError
	content, err := guide.ReadFile(name)
	if err == nil {
		_, err = p.Out.Write(content)
		return err
	}
	if !errors.As(err, &unknown) {
		return err
	}
	chapter, err := guide.FindChapter(name)
	if errors.As(err, &unknown) {
		return terminal.NewUsageError(c, "%v", err)
	}
	if err != nil {
		return err
	}
	_, err = p.Out.Write([]byte(chapter.Format(p.guideWidth())))
	return err
}

// defaultGuideWidth is the width of the guide if the terminal's width is unknown, and maxGuideWidth the widest that is easy
// to read.
const (
	defaultGuideWidth = 80
	maxGuideWidth     = 110
)

// guideWidth is how many columns the guide is folded to.
func (p Program) guideWidth() int {
	if p.Columns <= 0 {
		return defaultGuideWidth
	}
	return min(p.Columns, maxGuideWidth)
}
