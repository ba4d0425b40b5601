package table

// What can be told to be wrong before an item is seen: DynamoDB refuses an expression whose literals can never fit.

func (k kind) text() bool  { return k == kindS || k == kindB }
func (k kind) sized() bool { return k != kindN && k != kindBool && k != kindNull }

// fixedKind returns the kind that an operand has whatever the item.
func fixedKind(o operand) (kind, bool) {
	switch o := o.(type) {
	case literal:
		return o.is.kind, true
	case sizeOf:
		return kindN, true
	}
	return 0, false
}

// checkKinds refuses operands of a fixed kind that fits says no to.
func (p *parser) checkKinds(operator string, fits func(kind) bool, operands ...operand) {
	for _, o := range operands {
		if k, fixed := fixedKind(o); fixed && !fits(k) {
			p.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, k)
		}
	}
}

func (p *parser) checkDistinct(operator string, first, second operand) {
	a, isPath := first.(path)
	b, isPathToo := second.(path)
	if isPath && isPathToo && p.err == nil && a.equal(b) {
		p.fail("The first operand must be distinct from the remaining operands for this operator or function; "+
			"operator: %s, first operand: %s", operator, a)
	}
}

func (p *parser) checkComparison(c *comparison) {
	if p.err != nil {
		return
	}
	p.checkDistinct(c.op, c.left, c.right)
	if c.op != "=" && c.op != "<>" {
		p.checkKinds(c.op, kind.ordered, c.left, c.right)
	}
}

func (p *parser) checkBetween(b *between) {
	low, isLiteral := b.low.(literal)
	high, isLiteralToo := b.high.(literal)
	p.checkKinds("BETWEEN", kind.ordered, b.of, b.low, b.high)
	switch {
	case !isLiteral || !isLiteralToo || p.err != nil:
	case low.is.kind != high.is.kind:
		p.fail("The BETWEEN operator requires same data type for lower and upper bounds; "+
			"lower bound operand: AttributeValue: {%s:%s}, upper bound operand: AttributeValue: {%s:%s}",
			low.is.kind, low.is.text, high.is.kind, high.is.text)
	case low.is.compare(high.is) > 0:
		p.fail("The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "+
			"lower bound operand: AttributeValue: {%s:%s}, upper bound operand: AttributeValue: {%s:%s}",
			low.is.kind, low.is.text, high.is.kind, high.is.text)
	}
}

func (p *parser) typeTest(args []operand) condition {
	want, ok := args[1].(literal)
	if !ok || want.is.kind != kindS {
		k := "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"
		if fixed, known := fixedKind(args[1]); known {
			k = fixed.String()
		}
		p.fail("Incorrect operand type for operator or function; operator or function: attribute_type, operand type: %s", k)
		return nil
	}
	k, known := kindOf(want.is.text)
	if !known {
		p.fail("Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}", want.is.text)
	}
	return &hasType{args[0], k}
}
