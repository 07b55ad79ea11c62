"""Lists AlertSchedules with their last and next times."""

from pydantic import BaseModel

from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.objects import list_permission, paginate, sort_key, valid_objects
from tarsy.http.routes.parameters import ListQuery
from tarsy.http.views.schedules import ScheduleList, ScheduleView
from tarsy.resources.v1alpha1 import AlertSchedule


async def list_alert_schedules(ask: CheckedRequest) -> BaseModel:
    """Returns a page of the schedules."""
    query = ask.query(ListQuery)
    schedules = await valid_objects(ask, AlertSchedule, query.namespace)
    found, token = paginate(f"{AlertSchedule.PLURAL}/{query.namespace}", query, schedules, sort_key, 2)
    return ScheduleList.model_validate({"items": tuple(map(ScheduleView.of, found)), "continue": token})


ROUTES = (
    Route(
        method="GET",
        path="/alertschedules",
        operation="listAlertSchedules",
        summary="List alert schedules with their last and next times",
        handler=list_alert_schedules,
        permission=list_permission(AlertSchedule),
        query=ListQuery,
        response=ScheduleList,
    ),
)
