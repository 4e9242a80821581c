package cli

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
	"lieudit/schemas/body"
)

// projectionHeaders are the columns of projectionRow.
func projectionHeaders() []string {
	return []string{"NAME", "VERSION", "GENERATION", "STATE", "POSITION", "LAG", "OWNER", "REASON"}
}

// projectionsCommand groups the maintenance of read models: /projections of the customer area. A read model is a set of
// tables made from the log; a generation is one filling of them.
func (p Program) projectionsCommand() *cli.Command {
	return terminal.NewGroup("projections", "How the read models stand; make them anew",
		p.projectionsStatusCommand(), p.projectionsRebuildCommand(), p.projectionsRepairCommand(), p.projectionsPruneCommand())
}

// projectionsStatusCommand is lieudit projections status: GET /projections. It lists every generation of every read model.
func (p Program) projectionsStatusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "Show how far each read model has come, and why one stands still",
		Flags: p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			return printList(ctx, s, "/projections", nil, projectionHeaders(), projectionRow)
		}),
	}
}

// projectionRow is a generation of a read model as a row of a table.
func projectionRow(m body.Projection) []string {
	return []string{m.Name, fmt.Sprint(m.Version), m.Generation, m.State, fmt.Sprint(m.Position), formatLag(m), m.Owner, m.Reason}
}

// projectionsRebuildCommand is lieudit projections rebuild: POST /projections/{name}:rebuild, or /projections:rebuild
// for all. The request starts a new generation and does not wait until it is filled.
func (p Program) projectionsRebuildCommand() *cli.Command {
	return &cli.Command{
		Name:        "rebuild",
		Usage:       "Make a fresh generation of a read model, or of --all, from the log while the old one serves",
		ArgsUsage:   "[NAME]",
		Description: "  lieudit projections rebuild accounts\n  lieudit projections rebuild --all\n  lieudit projections status",
		Flags:       p.areaFlags(&cli.BoolFlag{Name: "all", Usage: "every read model, as after an older copy of the log was restored"}),
		Action:      p.areaAction(rebuildProjections),
	}
}

// rebuildProjections starts a new generation of the named read model, or of every one with --all. NAME is optional in
// ArgsUsage because of --all, so that exactly one of them is given is checked here.
func rebuildProjections(ctx context.Context, s session) error {
	switch all, name := s.Bool("all"), s.Args().First(); { // both and neither are wrong usage
	case all && name != "":
		return terminal.NewUsageError(s.Command, "a NAME or --all, not both")
	case all:
		return s.runMaintenance(ctx, "/projections:rebuild")
	case name == "":
		return terminal.NewUsageError(s.Command, "NAME or --all is missing: %s [NAME]", s.FullName())
	default:
		return s.runMaintenance(ctx, adminclient.JoinPath("rebuild", "projections", name))
	}
}

// projectionsRepairCommand is lieudit projections repair: POST /projections:repair. The service appends corrections that
// name the unusable events of the account, and the command prints the events that are passed over from now on.
func (p Program) projectionsRepairCommand() *cli.Command {
	return &cli.Command{
		Name:      "repair",
		Usage:     "Let an account go on that an unusable event stopped",
		ArgsUsage: "ACCOUNT",
		Description: "  lieudit projections repair mende --reason \"damaged by the restore of 21 November\"\n\n" +
			"Events of the account that cannot be used stay on the log; corrections that name them are appended,\n" +
			"and from then on they are passed over. What they said is lost: ask for it again.",
		Flags: append(p.areaFlags(), &cli.StringFlag{Name: "reason", Usage: "why, for the auditor; of a token it stays on the log for ever, so name nobody"}),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			in := body.Repair{Account: s.Args().First(), Reason: s.String("reason")}
			return printResults(s, s.client.PostForList(ctx, "/projections:repair", in), repairHeaders(), repairRow)
		}),
	}
}

// repairHeaders are the columns of repairRow.
func repairHeaders() []string { return []string{"STREAM", "REVISION", "POSITION", "TYPE", "REASON"} }

// repairRow is an event that a repair passes over, as a row of a table.
func repairRow(e body.VoidedEvent) []string {
	return []string{e.Stream, fmt.Sprint(e.Revision), fmt.Sprint(e.Position), e.Type, e.Reason}
}

// runMaintenance sends a maintenance request and prints the status of the read models in the answer. The work itself goes
// on in the service; projections status shows how far it is.
func (s session) runMaintenance(ctx context.Context, path string) error {
	return printResults(s, s.client.PostForList(ctx, path, body.Empty{}), projectionHeaders(), projectionRow)
}

// projectionsPruneCommand is lieudit projections prune: POST /projections:prune. It drops generations that a rebuild or a
// new release has replaced. The service itself drops those of rebuilds but the last.
func (p Program) projectionsPruneCommand() *cli.Command {
	return &cli.Command{
		Name:  "prune",
		Usage: "Drop the generations of read models that nothing reads any more",
		Flags: p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			return s.runMaintenance(ctx, "/projections:prune")
		}),
	}
}

// formatLag formats how many events of the log a generation is behind; "" when that is not known.
func formatLag(m body.Projection) string {
	if m.Lag == nil {
		return ""
	}
	return fmt.Sprint(*m.Lag)
}
