"""What the demo's workers run: ``lanner worker lanner.demo.shop:shop``."""

import os

from ..workflow.namespace import WorkflowNamespace
from .order import count_stock, fulfil

shop = WorkflowNamespace("shop", redis=os.environ.get("LANNER_DEMO_REDIS", "embedded"))
order = shop.create_workflow("order", run=fulfil)
stock = shop.create_workflow("stock", run=count_stock)
