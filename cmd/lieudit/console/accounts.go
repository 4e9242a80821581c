package console

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/schemas/body"
	"lieudit/schemas/body/shape"
	"lieudit/schemas/plan"
)

func (p Program) accounts() *cli.Command {
	return group("account", "Open, list, change, close and erase accounts",
		p.accountOpen(), p.accountList(), p.accountShow(), p.accountPlan(), p.accountAgency(), p.accountClose(), p.accountErase())
}

func planNames() []string {
	var out []string
	for _, pl := range plan.All() {
		out = append(out, string(pl.Name))
	}
	return out
}

func (p Program) accountOpen() *cli.Command {
	return &cli.Command{
		Name:      "open",
		Usage:     "Open an account",
		ArgsUsage: "NAME",
		Description: `Piped, it prints the new account's id alone.

  lieudit account open "Mairie de Mende" --plan STARTER
  lieudit account open "Agence Gévaudan" --plan BUSINESS --id gevaudan --quota 3000000 --start 2026-11-15
  id=$(lieudit account open "Camping du Lot" --plan BUSINESS --agency-of gevaudan)`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "plan", Required: true, Usage: "`PLAN`: " + strings.Join(planNames(), ", "), Validator: oneOf(planNames()...)},
			&cli.StringFlag{Name: "id", Usage: "`ID` of the account, a-z, 0-9 and -; chosen by the service when left out"},
			quotaFlag(),
			&cli.StringFlag{Name: "start", Usage: "first `DAY` of the first period, as 2026-11-21, not after today; today when left out"},
			&cli.StringFlag{Name: "agency-of", Usage: "`ID` of the agency it is a sub-client of"},
		),
		Action: p.visiting(openAccount),
	}
}

func openAccount(ctx context.Context, v visit) error {
	request := body.OpenAccount{
		ID:     v.String("id"),
		Name:   v.Args().First(),
		Plan:   planOf(v.String("plan")),
		Quota:  v.Int64("quota"),
		Agency: v.String("agency-of"),
	}
	if start := v.String("start"); start != "" {
		day, err := plan.ParseDate(start)
		if err != nil {
			return wrong(v.Command, "--start: %v", err)
		}
		request.Start = day
	}
	raw, err := v.api.Post(ctx, "/accounts", request)
	if err != nil {
		return err
	}
	return one(v, raw, v.opened)
}

func (v visit) opened(a body.Account) error {
	if !v.Terminal {
		return v.say("%s", a.ID)
	}
	if err := v.account(a); err != nil {
		return err
	}
	return v.say("\nNow give it a key: lieudit key issue %s", a.ID)
}

func planOf(text string) plan.Name { return plan.Name(strings.ToUpper(text)) }

func (p Program) accountList() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "List the accounts",
		Flags: p.areaFlags(),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			heads := []string{"ID", "NAME", "PLAN", "QUOTA", "PERIOD", "AGENCY", "OPENED", "CLOSED"}
			return many(ctx, v, "/accounts", nil, heads, v.accountRow)
		}),
	}
}

func (v visit) accountRow(a body.Account) []string {
	return []string{
		a.ID, a.Name, string(a.Plan), strconv.FormatInt(a.Quota, 10), v.period(a),
		agencyOf(a.IsAgency, a.Agency), v.short(a.Created), v.short(a.Closed),
	}
}

func agencyOf(is bool, of string) string {
	switch {
	case is:
		return "is one"
	case of != "":
		return "of " + of
	}
	return ""
}

func (v visit) period(a body.Account) string {
	if a.Period.Start.IsZero() {
		return ""
	}
	return plan.DateOf(a.Period.Start).String()
}

func (p Program) accountShow() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "Show one account",
		ArgsUsage: "ID",
		Flags:     p.areaFlags(),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			raw, err := v.api.Get(ctx, backoffice.Path("", "accounts", v.Args().First()), nil)
			return v.showAccount(raw, err)
		}),
	}
}

func (v visit) showAccount(raw json.RawMessage, err error) error {
	if err != nil {
		return err
	}
	return one(v, raw, v.account)
}

func (v visit) account(a body.Account) error {
	return v.record(
		"account", a.ID,
		"name", a.Name,
		"plan", string(a.Plan),
		"quota", fmt.Sprintf("%d requests a month", a.Quota),
		"running period", v.period(a),
		"agency", agencyOf(a.IsAgency, a.Agency),
		"next", v.next(a.Next),
		"opened", v.short(a.Created),
		"closed", v.short(a.Closed),
	)
}

func (v visit) next(n *body.NextTerms) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("%s with %d requests a month from %s", n.Plan, n.Quota, v.short(n.Effective))
}

func (p Program) accountPlan() *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "Change an account's plan: a larger one now, a smaller one at its next period",
		ArgsUsage: "ID PLAN",
		Description: `PLAN is one of ` + strings.Join(planNames(), ", ") + `.

  lieudit account plan mende GROWTH
  lieudit account plan mende STARTER --quota 150000`,
		Flags: p.areaFlags(quotaFlag()),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			id, name := v.Args().Get(0), v.Args().Get(1)
			if err := oneOf(planNames()...)(name); err != nil {
				return wrong(v.Command, "PLAN %q: %v", name, err)
			}
			raw, err := v.api.Post(ctx, backoffice.Path("plan", "accounts", id), body.ChangePlan{Plan: planOf(name), Quota: v.Int64("quota")})
			return v.showAccount(raw, err)
		}),
	}
}

func (p Program) accountAgency() *cli.Command {
	return &cli.Command{
		Name:      "agency",
		Usage:     "Make an account an agency, or its sub-client",
		ArgsUsage: "ID",
		Description: `Without a flag the account becomes an agency and can have sub-clients.

  lieudit account agency gevaudan
  lieudit account agency mende --join gevaudan
  lieudit account agency mende --leave`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "join", Usage: "become a sub-client of the agency `ID` at the next period"},
			&cli.BoolFlag{Name: "leave", Usage: "leave its agency at the next period, with the own plan's number of requests; an operator's token alone can"},
		),
		Action: p.visiting(changeAgency),
	}
}

func changeAgency(ctx context.Context, v visit) error {
	var request body.ChangeAgency
	join := v.String("join")
	switch {
	case join != "" && v.Bool("leave"):
		return wrong(v.Command, "--join and --leave exclude each other")
	case join != "":
		request.Agency = shape.Nullable[string]{Given: true, Value: &join}
	case v.Bool("leave"):
		request.Agency.Given = true
	}
	raw, err := v.api.Post(ctx, backoffice.Path("agency", "accounts", v.Args().First()), request)
	return v.showAccount(raw, err)
}

func (p Program) accountClose() *cli.Command {
	return &cli.Command{
		Name:        "close",
		Usage:       "Close an account for good: none of its keys works any more",
		ArgsUsage:   "ID",
		Description: `  lieudit account close mende --reason "contract ended"`,
		Flags:       p.areaFlags(&cli.StringFlag{Name: "reason", Usage: "`WHY`, for the audit trail"}),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			id := v.Args().First()
			raw, err := v.api.Post(ctx, backoffice.Path("close", "accounts", id), body.CloseAccount{ID: id, Reason: v.String("reason")})
			return v.showAccount(raw, err)
		}),
	}
}

func (p Program) accountErase() *cli.Command {
	return &cli.Command{
		Name:      "erase",
		Usage:     "Make a closed account's personal data unreadable for good",
		ArgsUsage: "ID",
		Description: `The key that its name is encrypted with is destroyed. What happened, when and by whose token stays on the log.

  lieudit account erase mende --reason "asked for by the customer"`,
		Flags: p.areaFlags(&cli.StringFlag{Name: "reason", Usage: "`WHY`, for the audit trail"}),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			raw, err := v.api.Post(ctx, backoffice.Path("erase", "accounts", v.Args().First()), body.EraseAccount{Reason: v.String("reason")})
			return v.showAccount(raw, err)
		}),
	}
}
