package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
	"lieudit/schemas/body"
	"lieudit/schemas/body/shape"
	"lieudit/schemas/plan"
)

// accountCommand groups the commands on accounts. Each but list sends one request to /accounts of the customer area and
// prints the account in the answer. Who may do what depends on the role of the token; the service decides that.
func (p Program) accountCommand() *cli.Command {
	return terminal.NewGroup("account", "Open, list, change, close and erase accounts",
		p.accountOpenCommand(), p.accountListCommand(), p.accountShowCommand(), p.accountPlanCommand(), p.accountAgencyCommand(), p.accountCloseCommand(), p.accountEraseCommand())
}

// planNames are the names of all plans, for the help and for validators.
func planNames() []string {
	var names []string
	for _, offered := range plan.All() {
		names = append(names, string(offered.Name))
	}
	return names
}

// describePlans names the plans with the sites that each holds.
func describePlans() string {
	var texts []string
	for _, offered := range plan.All() {
		texts = append(texts, fmt.Sprintf("%s (%s sites)", offered.Name, terminal.GroupThousands(offered.SiteCapacity)))
	}
	return strings.Join(texts, ", ")
}

// accountOpenCommand is lieudit account open: POST /accounts. The service chooses the id if none is given. The volume is
// the plan's own unless --quota gives another. An account has no key at first.
func (p Program) accountOpenCommand() *cli.Command {
	return &cli.Command{
		Name:      "open",
		Usage:     "Open an account",
		ArgsUsage: "NAME",
		Description: `Piped, it prints the new account's id alone.

  lieudit account open "Mairie de Mende" --plan STARTER
  lieudit account open "Agence Gévaudan" --plan BUSINESS --id gevaudan --quota 3000000 --start 2026-11-15
  id=$(lieudit account open "Camping du Lot" --plan BUSINESS --agency-of gevaudan)`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "plan", Required: true, Usage: "`PLAN`: " + describePlans(), Validator: terminal.OneOf(planNames()...)},
			&cli.StringFlag{Name: "id", Usage: "`ID` of the account, a-z, 0-9 and -; chosen by the service when left out"},
			quotaFlag(),
			&cli.StringFlag{Name: "start", Usage: "first `DAY` of the first period, as 2026-11-21, not after today; today when left out"},
			&cli.StringFlag{Name: "agency-of", Usage: "`ID` of the agency it is a sub-client of"},
		),
		Action: p.areaAction(openAccount),
	}
}

// openAccount sends POST /accounts. An empty field leaves the choice to the service. A start that is not a date is wrong usage;
// the service checks everything else.
func openAccount(ctx context.Context, s session) error {
	request := body.OpenAccount{
		ID:     s.String("id"),
		Name:   s.Args().First(),
		Plan:   parsePlan(s.String("plan")),
		Quota:  s.Int64("quota"),
		Agency: s.String("agency-of"),
	}
	if start := s.String("start"); start != "" {
		day, err := plan.ParseDate(start)
		if err != nil {
			return terminal.NewUsageError(s.Command, "--start: %v", err)
		}
		request.Anchor = day // the day of the month on which its periods begin
	}
	raw, err := s.client.Post(ctx, "/accounts", request)
	if err != nil {
		return err
	}
	return printResource(s, raw, s.printOpenedAccount)
}

// printOpenedAccount prints only the id if Out is not a terminal, so that a script can keep it in a variable. For people it
// prints the account and the next step.
func (s session) printOpenedAccount(a body.Account) error {
	if !s.IsTerminal {
		return s.PrintLine("%s", a.ID)
	}
	if err := s.printAccount(a); err != nil {
		return err
	}
	return s.PrintLine("\nNow give it a key: lieudit key issue %s", a.ID)
}

// parsePlan returns the plan of a name in upper or lower case. It does not check that there is such a plan.
func parsePlan(text string) plan.Name { return plan.Name(strings.ToUpper(text)) }

// accountListCommand is lieudit account list: GET /accounts, page after page.
func (p Program) accountListCommand() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "List the accounts",
		Flags: p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			headers := []string{"ID", "NAME", "PLAN", "QUOTA", "PERIOD", "AGENCY", "OPENED", "CLOSED"}
			return printList(ctx, s, "/accounts", nil, headers, s.accountRow)
		}),
	}
}

// accountRow is the row of an account in the table of account list.
func (s session) accountRow(a body.Account) []string {
	return []string{
		a.ID, a.Name, string(a.Plan), strconv.FormatInt(a.Quota, 10), s.formatPeriod(a),
		describeAgency(a.IsAgency, a.Agency), s.formatTime(a.Created), s.formatTime(a.Closed),
	}
}

// describeAgency reports whether an account is an agency or which agency it is a sub-client of; "" for neither. An agency has
// sub-clients, whose requests count for the agency's volume.
func describeAgency(isAgency bool, agency string) string {
	switch {
	case isAgency:
		return "is one"
	case agency != "":
		return "of " + agency
	}
	return ""
}

// formatPeriod returns the first day of the current period, "" if there is none.
func (s session) formatPeriod(a body.Account) string {
	if a.Period.Start.IsZero() {
		return ""
	}
	return plan.DateOf(a.Period.Start).String()
}

// accountShowCommand is lieudit account show: GET /accounts/{id}. It reads a read model; audit state reads the log.
func (p Program) accountShowCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "Show one account",
		ArgsUsage: "ID",
		Flags:     p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			raw, err := s.client.Get(ctx, adminclient.JoinPath("", "accounts", s.Args().First()), nil)
			return s.printAccountResponse(raw, err)
		}),
	}
}

// printAccountResponse prints the account in an answer, or returns the error of the request. It takes what the client's
// methods return. The account is as it stands after the change.
func (s session) printAccountResponse(raw json.RawMessage, err error) error {
	if err != nil {
		return err
	}
	return printResource(s, raw, s.printAccount)
}

// printAccount prints an account for people, without the fields that are empty.
func (s session) printAccount(a body.Account) error {
	return s.PrintFields(
		"account", a.ID,
		"name", a.Name,
		"plan", string(a.Plan),
		"quota", fmt.Sprintf("%d requests a month", a.Quota),
		"running period", s.formatPeriod(a),
		"agency", describeAgency(a.IsAgency, a.Agency),
		"next", s.describeNextTerms(a.NextTerms),
		"next agency", s.describeNextAgency(a.NextAgency),
		"opened", s.formatTime(a.Created),
		"closed", s.formatTime(a.Closed),
		"left out", strings.Join(a.Omitted, " "),
	)
}

// describeNextTerms says which plan and volume begin with the next period; "" when both stay the same.
func (s session) describeNextTerms(n *body.NextTerms) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("%s with %d requests a month from %s", n.Plan, n.Quota, s.formatTime(n.Effective))
}

// describeNextAgency says which agency is joined or left later, and when; "" for none.
func (s session) describeNextAgency(n *body.NextAgency) string {
	switch {
	case n == nil:
		return ""
	case n.Agency == "":
		return "none from " + s.formatTime(n.Effective)
	}
	return "of " + n.Agency + " from " + s.formatTime(n.Effective)
}

// accountPlanCommand is lieudit account plan: POST /accounts/{id}:plan. A larger plan is valid at once, a smaller one
// from the next period on; the service decides which it is. The plan is an argument, so the action validates it.
func (p Program) accountPlanCommand() *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "Change an account's plan: a larger one now, a smaller one at its next period",
		ArgsUsage: "ID PLAN",
		Description: `PLAN is one of ` + strings.Join(planNames(), ", ") + `.

  lieudit account plan mende GROWTH
  lieudit account plan mende STARTER --quota 150000`,
		Flags: p.areaFlags(quotaFlag()),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			id, name := s.Args().Get(0), s.Args().Get(1)
			if err := terminal.OneOf(planNames()...)(name); err != nil {
				return terminal.NewUsageError(s.Command, "PLAN %q: %v", name, err)
			}
			raw, err := s.client.Post(ctx, adminclient.JoinPath("plan", "accounts", id), body.ChangePlan{Plan: parsePlan(name), Quota: s.Int64("quota")})
			return s.printAccountResponse(raw, err)
		}),
	}
}

// accountAgencyCommand is lieudit account agency: POST /accounts/{id}:agency. It makes an account an agency, or moves it
// into or out of one.
func (p Program) accountAgencyCommand() *cli.Command {
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
		Action: p.areaAction(changeAgency),
	}
}

// changeAgency sends the field of the agency in one of three forms, which mean different things to the service: with a value (--join),
// as null (--leave), or not at all, which makes the account an agency.
func changeAgency(ctx context.Context, s session) error {
	var request body.ChangeAgency
	join := s.String("join")
	switch {
	case join != "" && s.Bool("leave"):
		return terminal.NewUsageError(s.Command, "--join and --leave exclude each other")
	case join != "":
		request.Agency = shape.Nullable[string]{IsGiven: true, Value: &join}
	case s.Bool("leave"):
		request.Agency.IsGiven = true
	}
	raw, err := s.client.Post(ctx, adminclient.JoinPath("agency", "accounts", s.Args().First()), request)
	return s.printAccountResponse(raw, err)
}

// accountCloseCommand is lieudit account close: POST /accounts/{id}:close. It cannot be undone. The service demands a
// confirmation, which is the id once more in the body, and the command asks for it.
func (p Program) accountCloseCommand() *cli.Command {
	return &cli.Command{
		Name:      "close",
		Usage:     "Close an account for good: none of its keys works any more",
		ArgsUsage: "ID",
		Description: `On a terminal it asks for the id once more.

  lieudit account close mende --reason "contract ended"
  lieudit account close mende --reason "contract ended" --yes`,
		Flags: p.areaFlags(&cli.StringFlag{Name: "reason", Usage: "`WHY`, for the audit trail; an erasure takes it away"}, yesFlag()),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			id := s.Args().First()
			if err := s.confirmID("closing account", id); err != nil {
				return err
			}
			raw, err := s.client.Post(ctx, adminclient.JoinPath("close", "accounts", id), body.CloseAccount{ID: id, Reason: s.String("reason")})
			return s.printAccountResponse(raw, err)
		}),
	}
}

// accountEraseCommand is lieudit account erase: POST /accounts/{id}:erase. It destroys the account's data key, with which
// its personal fields are encrypted, and cannot be undone. The service refuses it for an account that is open.
func (p Program) accountEraseCommand() *cli.Command {
	return &cli.Command{
		Name:      "erase",
		Usage:     "Make a closed account's personal data unreadable for good",
		ArgsUsage: "ID",
		Description: `The key is destroyed that its name, its sites, its labels, the names of its referentials and all reasons are
encrypted with, the reason of the erasure among them. What happened, when and by whose token stays on the log, and so do external
ids, codes, origins, and what was written before format 3 of the log: see lieudit guide erasure.
On a terminal it asks for the id once more.

  lieudit account erase mende --reason "asked for by the customer"`,
		Flags: p.areaFlags(&cli.StringFlag{Name: "reason", Usage: "`WHY`; it is erased with the account, so keep it elsewhere"}, yesFlag()),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			id := s.Args().First()
			if err := s.confirmID("erasing account", id); err != nil {
				return err
			}
			raw, err := s.client.Post(ctx, adminclient.JoinPath("erase", "accounts", id), body.EraseAccount{ID: id, Reason: s.String("reason")})
			return s.printAccountResponse(raw, err)
		}),
	}
}

// quotaFlag is the number of requests a month. It refuses 0: the customer area would read it as left out.
func quotaFlag() cli.Flag {
	return &cli.Int64Flag{
		Name: "quota", Usage: "`REQUESTS` a month; the plan's own number when left out", HideDefault: true,
		Validator: func(n int64) error { return terminal.AtLeastOne(int(n)) },
	}
}
