package console

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/schemas/body"
)

func projectionHeads() []string {
	return []string{"NAME", "VERSION", "COPY", "STATE", "POSITION", "LAG", "OWNER", "REASON"}
}

func (p Program) projections() *cli.Command {
	return group("projections", "How the read models stand; make them anew",
		p.projectionsStatus(), p.projectionsRebuild(), p.projectionsRepair(), p.projectionsPrune())
}

func (p Program) projectionsStatus() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "Show how far each read model has come, and why one stands still",
		Flags: p.areaFlags(),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			return many(ctx, v, "/projections", nil, projectionHeads(), projectionRow)
		}),
	}
}

func projectionRow(m body.Projection) []string {
	return []string{m.Name, fmt.Sprint(m.Version), m.Copy, m.State, fmt.Sprint(m.Position), lag(m), m.Owner, m.Reason}
}

func (p Program) projectionsRebuild() *cli.Command {
	return &cli.Command{
		Name:        "rebuild",
		Usage:       "Make a fresh copy of a read model, or of --all, from the log while the old one serves",
		ArgsUsage:   "[NAME]",
		Description: "  lieudit projections rebuild accounts\n  lieudit projections rebuild --all\n  lieudit projections status",
		Flags:       p.areaFlags(&cli.BoolFlag{Name: "all", Usage: "every read model, as after an older copy of the log was restored"}),
		Action:      p.visiting(rebuild),
	}
}

func rebuild(ctx context.Context, v visit) error {
	switch all, name := v.Bool("all"), v.Args().First(); {
	case all && name != "":
		return wrong(v.Command, "a NAME or --all, not both")
	case all:
		return v.upkeep(ctx, "/projections:rebuild")
	case name == "":
		return wrong(v.Command, "NAME or --all is missing: %s [NAME]", v.FullName())
	default:
		return v.upkeep(ctx, backoffice.Path("rebuild", "projections", name))
	}
}

func (p Program) projectionsRepair() *cli.Command {
	return &cli.Command{
		Name:      "repair",
		Usage:     "Let an account go on that an unusable event stopped",
		ArgsUsage: "ACCOUNT",
		Description: "  lieudit projections repair mende --reason \"damaged by the restore of 21 November\"\n\n" +
			"Events of the account that cannot be used stay on the log; corrections that name them are appended,\n" +
			"and from then on they are passed over. What they said is lost: ask for it again.",
		Flags: append(p.areaFlags(), &cli.StringFlag{Name: "reason", Usage: "why, for the auditor"}),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			in := body.Repair{Account: v.Args().First(), Reason: v.String("reason")}
			return list(v, v.api.Submit(ctx, "/projections:repair", in), repairedHeads(), repairedRow)
		}),
	}
}

func repairedHeads() []string { return []string{"STREAM", "REVISION", "POSITION", "TYPE", "REASON"} }

func repairedRow(e body.VoidedEvent) []string {
	return []string{e.Stream, fmt.Sprint(e.Revision), fmt.Sprint(e.Position), e.Type, e.Why}
}

// upkeep asks for something to be done about the read models and prints how they stand then.
func (v visit) upkeep(ctx context.Context, path string) error {
	return list(v, v.api.Submit(ctx, path, body.Empty{}), projectionHeads(), projectionRow)
}

func (p Program) projectionsPrune() *cli.Command {
	return &cli.Command{
		Name:  "prune",
		Usage: "Drop the copies of read models that nothing reads any more",
		Flags: p.areaFlags(),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			return v.upkeep(ctx, "/projections:prune")
		}),
	}
}

// lag is how many events a read model is behind, "" when that cannot be known.
func lag(m body.Projection) string {
	if m.Lag == nil {
		return ""
	}
	return fmt.Sprint(*m.Lag)
}
