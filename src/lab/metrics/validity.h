// Why a request counts for nothing, and what it did not show.
#pragma once

#include "lab/metrics/metrics.h"

namespace stet {

// Adds to figures.invalid, unproven and not_watched. figures.tokens and the cycle figures are there already.
void judge_validity(const RequestRecord& request, const FigureRules& rules, RequestFigures& figures);

}  // namespace stet
