package cli

import (
	"context"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/terminal"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

func (p Program) usageAdjustCommand() *cli.Command {
	return &cli.Command{
		Name:      "adjust",
		Usage:     "Correct a line of a closed period, for good",
		ArgsUsage: "CONTRACT",
		Description: `What the period was closed with stays; who corrected it and why is on the log.

  lieudit usage adjust mende --requests=-12 --period 2026-10-21 --day 2026-10-30 --key KEY --endpoint "GET /me" --reason "outage of 30 October"`,
		Flags: p.areaFlags(
			&cli.Int64Flag{Name: "requests", Required: true, Usage: "`HOW MANY` more, or with a minus less"},
			&cli.StringFlag{Name: "period", Required: true, Usage: "first `DAY` of the period"},
			&cli.StringFlag{Name: "day", Required: true, Usage: "`DAY` of the line"},
			&cli.StringFlag{Name: "key", Required: true, Usage: "`ID` of the key"},
			&cli.StringFlag{Name: "endpoint", Required: true, Usage: "`ENDPOINT`, such as GET /me"},
			&cli.StringFlag{Name: "account", Usage: "`ID` of the sub-client, where the contract is an agency's"},
			&cli.StringFlag{Name: "reason", Required: true, Usage: "`WHY`, for the audit trail"},
		),
		Action: p.areaAction(adjustUsage),
	}
}

func adjustUsage(ctx context.Context, s areaSession) error {
	request := body.AdjustUsage{
		Contract: s.Args().First(), Account: s.String("account"), Key: s.String("key"), Endpoint: s.String("endpoint"),
		Requests: s.Int64("requests"), Reason: s.String("reason"),
	}
	for name, day := range map[string]*plan.Date{"period": &request.Period, "day": &request.Day} {
		var err error
		if *day, err = plan.ParseDate(s.String(name)); err != nil {
			return terminal.NewUsageError(s.Command, "--%s: %v", name, err)
		}
	}
	raw, err := s.client.Post(ctx, "/usage:adjust", request)
	if err != nil {
		return err
	}
	return printOne(s, raw, func(l body.BilledLine) error {
		return s.PrintLine("%s, %s, %s, %s: %d requests", terminal.SanitizeText(l.Account), l.Day, terminal.SanitizeText(l.Key), terminal.SanitizeText(l.Endpoint), l.Requests)
	})
}
